/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of values that only settings of the daemons have. Most are texts with a check. */
#include "service/setting_kind.h"

#include <assert.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/tcp_address.h"
#include "base/text.h"
#include "base/units.h"
#include "core/task.h"
#include "estimator/estimator.h"
#include "message/message_address.h"
#include "nodelink/node_key.h"
#include "policy/policies.h"

enum { SAMPLES_MAX = 1000000 }; /* of one ring; chosen: 100 MB */

/* ---- texts ---- */

static bool is_address(const char *text)
{
    struct tcp_address address;
    return strcmp(text, "none") == 0 || tcp_address_parse(text, &address) == 0;
}

static bool is_web(const char *text)
{
    return strcmp(text, "on-demand") == 0 || is_address(text);
}

static bool is_mail_server(const char *text)
{
    bool is_url = strncmp(text, "smtp://", 7) == 0 || strncmp(text, "smtps://", 8) == 0;
    for (const char *at = text; *at; at++)
        is_url = is_url && *at > ' ' && *at < 0x7f;
    return is_url || strcmp(text, "none") == 0;
}

static bool is_mail_address(const char *text)
{
    const char *at = strchr(text, '@');
    bool is_plain = at && at > text && at[1];
    for (const char *c = text; *c; c++)
        is_plain = is_plain && *c > ' ' && *c < 0x7f && !strchr("<>\"\\", *c);
    return is_plain;
}

static bool is_alerts(const char *text)
{
    struct fault fault = {0};
    struct message_address address;
    bool is_whole = strchr(text, '@') || strstr(text, "://"); /* not a user's name only */
    return strcmp(text, "none") == 0 ||
           (is_whole && message_address_parse(text, &fault, &address) == 0);
}

/* The host may be a name, which is looked up when it is connected to. */
static bool is_host_port(const char *text)
{
    return strcmp(text, "none") == 0 || tcp_address_is_host_port(text);
}

static bool is_user(const char *text)
{
    return getpwnam(text);
}

/* ---- other values ---- */

static int parse_policy(const char *text, void *member)
{
    const struct policy *policy = policy_find(text);
    if (!policy)
        return -EINVAL;
    memcpy(member, &policy, sizeof policy);
    return 0;
}

static void format_policy(const void *member, char *text, size_t size)
{
    const struct policy *policy;
    memcpy(&policy, member, sizeof policy);
    snprintf(text, size, "%s", policy->name);
}

static int parse_quantile(const char *text, void *member)
{
    return quantile_parse(text, member);
}

static void format_quantile(const void *member, char *text, size_t size)
{
    snprintf(text, size, "%g", quantile_percent(*(const enum quantile *)member) / 100.0);
}

/* "1s:1h,10s:1d", or "none". */
static int parse_samples(const char *value, void *member)
{
    struct samples_kept kept = {.n = 0};
    char text[64];
    for (const char *at = strcmp(value, "none") == 0 ? "" : value; *at;) {
        struct samples_ring *ring = &kept.rings[kept.n];
        size_t n = strcspn(at, ",");
        char *colon;
        if (kept.n++ == SAMPLES_RINGS_MAX || !span_copy((struct span){at, n}, text, sizeof text) ||
            !(colon = strchr(text, ':')))
            return -EINVAL;
        *colon = '\0';
        if (setting_parse(&setting_period, text, &ring->step_us, sizeof ring->step_us) < 0 ||
            parse_duration(colon + 1, &ring->keep_us) < 0 || ring->keep_us < ring->step_us ||
            ring->keep_us / ring->step_us > SAMPLES_MAX)
            return -EINVAL;
        ring->keep_us -= ring->keep_us % ring->step_us;
        at += n + (at[n] == ',');
    }
    *(struct samples_kept *)member = kept;
    return 0;
}

static void format_samples(const void *member, char *text, size_t size)
{
    const struct samples_kept *kept = member;
    char step[32], keep[32];
    size_t used = (size_t)snprintf(text, size, "%s", kept->n ? "" : "none");
    for (size_t i = 0; i < kept->n && used < size; i++) {
        setting_format(&setting_duration, &kept->rings[i].step_us, step, sizeof step);
        setting_format(&setting_duration, &kept->rings[i].keep_us, keep, sizeof keep);
        used += (size_t)snprintf(text + used, size - used, "%s%s:%s", i ? "," : "", step, keep);
    }
}

/* ---- the kinds ---- */

static const char *const node_auth_names[] = {[NODE_AUTH_MUNGE] = "munge", [NODE_AUTH_TLS] = "tls"};
static const char *const outside_names[] = {
    [OUTSIDE_SHOW] = "show", [OUTSIDE_MESSAGE] = "message", [OUTSIDE_LIMIT] = "limit"};
static const char *const log_level_names[] = {[LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug"};

const struct setting_kind setting_web = {SETTING_TEXT,
    "none, on-demand or an address with a port such as 127.0.0.1:7480", .is_valid = is_web};
const struct setting_kind setting_address = {
    SETTING_TEXT, "none or an address with a port such as 127.0.0.1:7481", .is_valid = is_address};
const struct setting_kind setting_mail_server = {
    SETTING_TEXT, "none or a URL such as smtp://127.0.0.1:25", .is_valid = is_mail_server};
const struct setting_kind setting_mail_address = {
    SETTING_TEXT, "a mail address such as colloc@example.org", .is_valid = is_mail_address};
const struct setting_kind setting_alerts = {SETTING_TEXT,
    "none, a mail address, or a URL that begins with https:// or slack+https://",
    .is_valid = is_alerts};
const struct setting_kind setting_host_port = {
    SETTING_TEXT, "none or a host and a port such as login1:7490", .is_valid = is_host_port};
const struct setting_kind setting_user = {
    SETTING_TEXT, "a user of this machine", .is_valid = is_user};
/* At least what one submission of the largest size takes, beside root's reserve. */
const struct setting_kind setting_request_memory = {
    SETTING_SIZE, "a size of at least 64MiB, such as 1GiB", .min = 64 * MIB};
const struct setting_kind setting_policy = {
    SETTING_OTHER, "the name of a policy", .parse = parse_policy, .format = format_policy};
const struct setting_kind setting_quantile = {
    SETTING_OTHER, "0.5, 0.9 or 0.99", .parse = parse_quantile, .format = format_quantile};
const struct setting_kind setting_samples = {SETTING_OTHER,
    "up to 8 pairs such as 1s:1h,10s:1d, or none", .parse = parse_samples,
    .format = format_samples};
const struct setting_kind setting_sharing = {
    SETTING_CHOICE, "streams, mps or auto", .names = sharing_names, .n_names = SHARINGS};
const struct setting_kind setting_outside = {SETTING_CHOICE, "show, message or limit",
    .names = outside_names, .n_names = ARRAY_SIZE(outside_names)};
const struct setting_kind setting_node_auth = {SETTING_CHOICE, "munge or tls",
    .names = node_auth_names, .n_names = ARRAY_SIZE(node_auth_names)};
const struct setting_kind setting_log_level = {SETTING_CHOICE, "error, warning, info or debug",
    .names = log_level_names, .n_names = ARRAY_SIZE(log_level_names)};
static_assert(SAMPLES_RINGS_MAX == 8, "the text of setting_samples says how many");
static_assert(sizeof(enum sharing) == sizeof(int) && sizeof(enum node_auth) == sizeof(int) &&
                  sizeof(enum outside_way) == sizeof(int),
    "a choice is read and written as int");
