/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-message: delivers one message by libcurl, and ends. collocd runs it as the user that the
 * message is for: it can reach what that user could reach anyway, and holds nothing of others.
 * Where it is started as root (a login for the mail server, a message to the administrator), it
 * becomes the unprivileged user 65534 once it has read its input; no process of that user can look
 * into it.
 *
 *     standard input    {"form": "mail", "to": "ada@example.org", "id": "<7.c0ffee@host>",
 *                        "server": "smtp://127.0.0.1:25", "from": "colloc@host",
 *                        "subject": "...", "text": "...",
 *                        "login": {"user": "...", "password": "...", "ca_file": "..."}}
 *                       {"form": "webhook", "to": "https://...", "id": "...", "body": {...}}
 *                       {"form": "terminal", "id": "...", "text": "..."}
 *     standard output   a line that says why it failed; never the URL, which may be a secret
 *     exit status       0: delivered; 75 (EX_TEMPFAIL): try again later; 69 (EX_UNAVAILABLE): never
 *
 * A redirection is not followed. What a server answers is read up to ANSWER_MAX and not kept.
 */
#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/json_member.h"

enum {
    CONNECT_LIMIT_S = 10,    /* chosen */
    LIMIT_S = 30,            /* of all; chosen */
    ANSWER_MAX = 256 * 1024, /* bytes */
    SUBJECT_MAX = 300,       /* bytes; chosen */
    UNPRIVILEGED = 65534,    /* user and group without rights on every Linux */
};

/* ---- what is read ---- */

struct outgoing {
    const char *at;
    size_t size;
};

static size_t on_read(char *buffer, size_t size, size_t n, void *context)
{
    struct outgoing *outgoing = context;
    size_t piece = size * n < outgoing->size ? size * n : outgoing->size;
    memcpy(buffer, outgoing->at, piece);
    outgoing->at += piece;
    outgoing->size -= piece;
    return piece;
}

static size_t on_answer(char *data, size_t size, size_t n, void *context)
{
    size_t *read = context;
    *read += size * n;
    return *read > ANSWER_MAX ? 0 : size * n;
}

/* ---- mail ---- */

/* A subject in any language as one encoded-word after another (RFC 2047), which are folded. */
static void write_subject(FILE *out, const char *subject)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t left = strnlen(subject, SUBJECT_MAX);
    fputs("Subject:", out);
    while (left > 0) {
        size_t n = left < 42 ? left : 42;
        while (n < left && n > 36 && ((unsigned char)subject[n] & 0xc0) == 0x80)
            n--; /* not within a character */
        fputs(" =?UTF-8?B?", out);
        for (size_t i = 0; i < n; i += 3) {
            unsigned three = 0;
            for (size_t k = 0; k < 3; k++)
                three = three << 8 | (i + k < n ? (unsigned char)subject[i + k] : 0);
            for (size_t k = 0; k < 4; k++)
                fputc(i + k > n ? '=' : digits[three >> (18 - 6 * k) & 63], out);
        }
        fputs("?=\r\n", out);
        subject += n;
        left -= n;
    }
}

/* Lines of at most 900 bytes, ended by CR LF, without other control characters. */
static void write_text(FILE *out, const char *text)
{
    size_t column = 0;
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool breaks = c == '\n' || (column >= 900 && (c & 0xc0) != 0x80);
        if (breaks) {
            fputs("\r\n", out);
            column = 0;
        }
        if (c != '\n' && (c >= ' ' || c == '\t') && c != 0x7f) {
            fputc(c, out);
            column++;
        }
    }
    fputs("\r\n", out);
}

/* Returns the mail with its headers, for the caller to free. */
static char *make_mail(const json_t *message, size_t *ret_size)
{
    char *text = NULL, date[64];
    time_t now = time(NULL);
    struct tm at;
    FILE *out = open_memstream(&text, ret_size);
    if (!out)
        return NULL;
    gmtime_r(&now, &at);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", &at);
    fprintf(out, "From: colloc <%s>\r\nTo: <%s>\r\n", member_text(message, "from", ""),
        member_text(message, "to", ""));
    write_subject(out, member_text(message, "subject", ""));
    fprintf(out,
        "Date: %s\r\nMessage-ID: %s\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n",
        date, member_text(message, "id", ""));
    write_text(out, member_text(message, "text", ""));
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Never over a connection that is not encrypted. `login`: NULL: none is needed. */
static void use_login(CURL *curl, const json_t *login)
{
    if (!login)
        return;
    curl_easy_setopt(curl, CURLOPT_USERNAME, member_text(login, "user", ""));
    curl_easy_setopt(curl, CURLOPT_PASSWORD, member_text(login, "password", ""));
    curl_easy_setopt(curl, CURLOPT_USE_SSL, (long)CURLUSESSL_ALL);
    if (*member_text(login, "ca_file", ""))
        curl_easy_setopt(curl, CURLOPT_CAINFO, member_text(login, "ca_file", ""));
}

static CURLcode send_mail(CURL *curl, const json_t *message)
{
    size_t size;
    char *mail = make_mail(message, &size), from[400], to[400];
    struct outgoing outgoing = {mail, size};
    struct curl_slist *recipients = NULL;
    if (!mail)
        return CURLE_OUT_OF_MEMORY;
    snprintf(from, sizeof from, "<%s>", member_text(message, "from", ""));
    snprintf(to, sizeof to, "<%s>", member_text(message, "to", ""));
    recipients = curl_slist_append(recipients, to);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt(curl, CURLOPT_URL, member_text(message, "server", ""));
    curl_easy_setopt(curl, CURLOPT_MAIL_FROM, from);
    curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, recipients);
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(curl, CURLOPT_READDATA, &outgoing);
    use_login(curl, json_object_get(message, "login"));
    CURLcode code = curl_easy_perform(curl);
    curl_slist_free_all(recipients);
    free(mail);
    return code;
}

/* ---- webhooks ---- */

static CURLcode post_webhook(CURL *curl, const json_t *message)
{
    char id[300];
    char *body = json_dumps(json_object_get(message, "body"), JSON_COMPACT);
    if (!body)
        return CURLE_OUT_OF_MEMORY;
    snprintf(id, sizeof id, "Colloc-Message-Id: %s", member_text(message, "id", ""));
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    headers = curl_slist_append(headers, id);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_URL, member_text(message, "to", ""));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    CURLcode code = curl_easy_perform(curl);
    curl_slist_free_all(headers);
    free(body);
    return code;
}

/* ---- terminals ---- */

/* The text with a bell and a frame, as wall(1) writes it, for the caller to free. */
static char *make_notice(const char *text, size_t *ret_size)
{
    char *notice = NULL;
    FILE *out = open_memstream(&notice, ret_size);
    if (!out)
        return NULL;
    fputs("\r\n\aMessage from colloc:\r\n", out);
    write_text(out, text);
    if (fclose(out) == 0)
        return notice;
    free(notice);
    return NULL;
}

/* A terminal that is stopped (Ctrl-S) does not take it, and nothing waits for that. */
static void write_terminal(int folder, const char *name, const char *notice, size_t size)
{
    struct stat seen;
    int fd = openat(folder, name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &seen) == 0 && S_ISCHR(seen.st_mode) && seen.st_uid == geteuid() &&
        write(fd, notice, size) < 0)
        printf("a terminal takes nothing now: %s\n", strerror(errno));
    close(fd);
}

/* To each terminal that the user owns. One without any misses nothing: it has mail perhaps. */
static int write_terminals(const json_t *message)
{
    size_t size;
    char *notice = make_notice(member_text(message, "text", ""), &size);
    DIR *terminals = opendir("/dev/pts");
    for (const struct dirent *entry; terminals && notice && (entry = readdir(terminals));)
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
            write_terminal(dirfd(terminals), entry->d_name, notice, size);
    if (terminals)
        closedir(terminals);
    free(notice);
    return notice ? 0 : EX_TEMPFAIL;
}

/* ---- the outcome ---- */

/* 5xx of SMTP and 4xx of HTTP are permanent, except "too many requests" and "timeout". */
static bool is_final(bool is_mail, long status)
{
    if (is_mail)
        return status >= 500;
    return status >= 300 && status < 500 && status != 408 && status != 425 && status != 429;
}

/* Of the encryption or the login, which the administrator may correct: no mail was offered. */
static bool is_login_fault(CURLcode code, long status)
{
    return code == CURLE_LOGIN_DENIED || code == CURLE_USE_SSL_FAILED ||
           code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           (code != CURLE_OK && status < 400) || status == 535;
}

static int report_result(CURL *curl, CURLcode code, bool is_mail)
{
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK && (is_mail || (status >= 200 && status < 300)))
        return 0;
    if (is_mail && is_login_fault(code, status)) {
        puts(curl_easy_strerror(code));
        return EX_TEMPFAIL;
    }
    if (status > 0 && (code == CURLE_OK || is_mail)) {
        printf("the %s answered %ld\n", is_mail ? "mail server" : "webhook", status);
        return is_final(is_mail, status) ? EX_UNAVAILABLE : EX_TEMPFAIL;
    }
    printf("%s\n", curl_easy_strerror(code));
    bool is_wrong = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;
    return is_wrong ? EX_UNAVAILABLE : EX_TEMPFAIL;
}

static int deliver_message(const json_t *message)
{
    bool is_mail = strcmp(member_text(message, "form", ""), "mail") == 0;
    size_t answered = 0;
    CURL *curl = curl_easy_init();
    if (!curl)
        return EX_TEMPFAIL;
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_LIMIT_S);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)LIMIT_S);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "colloc/" COLLOC_VERSION);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answered);
    CURLcode code = is_mail ? send_mail(curl, message) : post_webhook(curl, message);
    int status = report_result(curl, code, is_mail);
    curl_easy_cleanup(curl);
    return status;
}

static int leave_root(void)
{
    prctl(PR_SET_DUMPABLE, 0);
    if (geteuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) < 0 ||
        setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) < 0)
        return -errno;
    return prctl(PR_SET_DUMPABLE, 0);
}

int main(int argc, char **argv)
{
    json_error_t error;
    signal(SIGPIPE, SIG_IGN);
    alarm(LIMIT_S + 5); /* whatever a resolver does */
    json_t *message = json_loadf(stdin, 0, &error);
    if (argc != 1 || !json_is_object(message)) {
        printf("usage: colloc-message < MESSAGE; only collocd runs it\n");
        return EX_USAGE;
    }
    if (leave_root() < 0) {
        printf("cannot become user 65534\n");
        return EX_TEMPFAIL;
    }
    if (strcmp(member_text(message, "form", ""), "terminal") == 0) {
        int written = write_terminals(message);
        json_decref(message);
        return written;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int status = deliver_message(message);
    curl_global_cleanup();
    json_decref(message);
    return status;
}
