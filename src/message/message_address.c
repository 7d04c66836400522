/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mail address is taken to the letter, with few characters: it goes into a command of SMTP. The
 * URL of a webhook is checked for its scheme and for what no URL has; libcurl parses the rest.
 */
#include "message/message_address.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

static const char *const names[MESSAGE_KINDS] = {
    [MESSAGE_START] = "start",
    [MESSAGE_END] = "end",
    [MESSAGE_FAIL] = "fail",
    [MESSAGE_REQUEUE] = "requeue",
    [MESSAGE_SUSPEND] = "suspend",
    [MESSAGE_IDLE] = "idle",
    [MESSAGE_GPU] = "gpu",
};

const char *message_kind_name(enum message_kind kind)
{
    return names[kind];
}

/* The bits of one name, in upper or lower case, or by Slurm's name; 0: there is none such. */
static unsigned kinds_of(const char *name, size_t length)
{
    if (length == 3 && strncasecmp(name, "all", 3) == 0)
        return (1U << MESSAGE_KINDS) - 1;
    for (int kind = 0; kind < MESSAGE_KINDS; kind++)
        if (strlen(names[kind]) == length && strncasecmp(names[kind], name, length) == 0)
            return 1U << kind;
    return length == 5 && strncasecmp(name, "BEGIN", 5) == 0 ? 1U << MESSAGE_START : 0;
}

int message_kinds_parse(const char *text, struct fault *fault, unsigned *ret_kinds)
{
    *ret_kinds = 0;
    if (strcasecmp(text, "none") == 0)
        return 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        unsigned kinds = kinds_of(at, length);
        if (!kinds)
            return fault_set(fault, EINVAL,
                "notify=%.40s: must be all, none, or a comma-separated list of start, end, fail, "
                "requeue, suspend, idle and gpu",
                text);
        *ret_kinds |= kinds;
        at += length;
        if (!*at)
            return 0;
    }
}

static bool is_mail_address(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._%+-=";
    size_t local = strspn(text, letters);
    if (local == 0 || local > 64 || *text == '-' || *text == '.')
        return false;
    if (!text[local])
        return true;
    const char *domain = text + local + 1;
    return text[local] == '@' && *domain && *domain != '.' && *domain != '-' &&
           domain[strlen(domain) - 1] != '-' && strlen(domain) <= 255 &&
           strspn(domain, letters) == strlen(domain) && !strpbrk(domain, "_%+=");
}

/* After the scheme: a host, and printable ASCII only. */
static bool is_url_rest(const char *rest)
{
    if (!*rest || strchr("/?#:@", *rest))
        return false;
    for (const char *at = rest; *at; at++)
        if (*at <= ' ' || *at >= 0x7f || *at == '"' || *at == '\\')
            return false;
    return true;
}

int message_address_parse(
    const char *text, struct fault *fault, struct message_address *ret_address)
{
    static const struct {
        const char *prefix, *scheme;
        enum message_form form;
    } urls[] = {
        {"slack+", "https://", MESSAGE_BY_SLACK},
        {"slack+", "http://", MESSAGE_BY_SLACK},
        {"", "https://", MESSAGE_BY_WEBHOOK},
        {"", "http://", MESSAGE_BY_WEBHOOK},
    };
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        size_t prefix = strlen(urls[i].prefix), scheme = strlen(urls[i].scheme);
        if (strncmp(text, urls[i].prefix, prefix) != 0 ||
            strncmp(text + prefix, urls[i].scheme, scheme) != 0)
            continue;
        *ret_address = (struct message_address){urls[i].form, text + prefix};
        return is_url_rest(text + prefix + scheme)
                   ? 0
                   : fault_set(fault, EINVAL, "notify_to: this is not a valid URL");
    }
    size_t mailto = strncmp(text, "mailto:", 7) == 0 ? 7 : 0;
    *ret_address = (struct message_address){MESSAGE_BY_MAIL, text + mailto};
    return is_mail_address(text + mailto)
               ? 0
               : fault_set(fault, EINVAL,
                     "notify_to: must be a mail address, a user of this machine, or a URL that "
                     "begins with https://, http:// or slack+https://");
}
