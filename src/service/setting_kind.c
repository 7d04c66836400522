/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and prints the values of settings, by kind. Printed values are as exact as those read. */
#include "service/setting_kind.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/tcp_address.h"
#include "base/text.h"
#include "base/units.h"
#include "core/core.h"
#include "estimator/estimator.h"
#include "message/message_address.h"
#include "nodelink/node_key.h"
#include "policy/policies.h"

enum { SAMPLES_MAX = 1000000 }; /* of one ring; chosen: 100 MB */

/* ---- from text ---- */

static int set_text(void *field, size_t size, const char *value)
{
    if (strlen(value) >= size)
        return -EINVAL;
    memcpy(field, value, strlen(value) + 1);
    return 0;
}

static int set_size(void *field, size_t size, const char *value)
{
    return parse_size(value, field);
}

static int set_address(void *field, size_t size, const char *value)
{
    struct tcp_address address;
    bool is_good = strcmp(value, "none") == 0 || tcp_address_parse(value, &address) == 0;
    return is_good ? set_text(field, size, value) : -EINVAL;
}

static int set_web(void *field, size_t size, const char *value)
{
    return strcmp(value, "on-demand") == 0 ? set_text(field, size, value)
                                           : set_address(field, size, value);
}

static int set_mail_server(void *field, size_t size, const char *value)
{
    bool is_url = strncmp(value, "smtp://", 7) == 0 || strncmp(value, "smtps://", 8) == 0;
    for (const char *at = value; *at; at++)
        is_url = is_url && *at > ' ' && *at < 0x7f;
    return is_url || strcmp(value, "none") == 0 ? set_text(field, size, value) : -EINVAL;
}

static int set_mail_address(void *field, size_t size, const char *value)
{
    const char *at = strchr(value, '@');
    bool is_plain = at && at > value && at[1];
    for (const char *c = value; *c; c++)
        is_plain = is_plain && *c > ' ' && *c < 0x7f && !strchr("<>\"\\", *c);
    return is_plain ? set_text(field, size, value) : -EINVAL;
}

static int set_alerts(void *field, size_t size, const char *value)
{
    struct fault fault = {0};
    struct message_address address;
    bool is_whole = strchr(value, '@') || strstr(value, "://"); /* not a user's name only */
    bool is_good = is_whole && message_address_parse(value, &fault, &address) == 0;
    return is_good || strcmp(value, "none") == 0 ? set_text(field, size, value) : -EINVAL;
}

/* The host may be a name, which is looked up when it is connected to. */
static int set_host_port(void *field, size_t size, const char *value)
{
    bool is_none = strcmp(value, "none") == 0;
    return is_none || tcp_address_is_host_port(value) ? set_text(field, size, value) : -EINVAL;
}

static int set_user(void *field, size_t size, const char *value)
{
    return getpwnam(value) ? set_text(field, size, value) : -EINVAL;
}

/* At least what one submission of the largest size takes, beside root's reserve. */
static int set_request_memory(void *field, size_t size, const char *value)
{
    int64_t bytes;
    if (parse_size(value, &bytes) < 0 || bytes < 64 * MIB)
        return -EINVAL;
    *(int64_t *)field = bytes;
    return 0;
}

static int set_duration(void *field, size_t size, const char *value)
{
    return parse_duration(value, field);
}

static int set_period(void *field, size_t size, const char *value)
{
    int64_t us;
    if (parse_duration(value, &us) < 0 || us < MS_US || us > 3600 * SECOND_US)
        return -EINVAL;
    *(int64_t *)field = us;
    return 0;
}

static int set_fraction(void *field, size_t size, const char *value)
{
    return parse_double(value, 0, 1, field);
}

static int set_quantile(void *field, size_t size, const char *value)
{
    return quantile_parse(value, field);
}

static int set_slowdown(void *field, size_t size, const char *value)
{
    return parse_double(value, 1, 1000, field);
}

static int set_count(void *field, size_t size, const char *value)
{
    int64_t count;
    int r = parse_int64(value, 0, 1000000, &count);
    if (r == 0)
        *(int *)field = (int)count;
    return r;
}

static int set_percentage(void *field, size_t size, const char *value)
{
    int64_t percent;
    int r = parse_int64(value, 0, 100, &percent);
    if (r == 0)
        *(int *)field = (int)percent;
    return r;
}

static int set_flag(void *field, size_t size, const char *value)
{
    bool yes = strcmp(value, "yes") == 0;
    if (!yes && strcmp(value, "no") != 0)
        return -EINVAL;
    *(bool *)field = yes;
    return 0;
}

static int set_policy(void *field, size_t size, const char *value)
{
    const struct policy *policy = policy_find(value);
    if (!policy)
        return -EINVAL;
    memcpy(field, &policy, sizeof policy);
    return 0;
}

static int set_sharing(void *field, size_t size, const char *value)
{
    return sharing_parse(value, field);
}

/* The names of enum node_auth. */
static const char *const node_auth_names[] = {"munge", "tls"};

static int set_node_auth(void *field, size_t size, const char *value)
{
    for (size_t i = 0; i < ARRAY_SIZE(node_auth_names); i++)
        if (strcmp(value, node_auth_names[i]) == 0) {
            *(enum node_auth *)field = (enum node_auth)i;
            return 0;
        }
    return -EINVAL;
}

static int set_statistic(void *field, size_t size, const char *value)
{
    return window_statistic_parse(value, field);
}

static int set_order(void *field, size_t size, const char *value)
{
    return queue_order_parse(value, field);
}

static int set_half_life(void *field, size_t size, const char *value)
{
    int64_t us;
    if (parse_duration(value, &us) < 0 || us < 60 * SECOND_US || us > 3650 * 86400 * SECOND_US)
        return -EINVAL;
    *(int64_t *)field = us;
    return 0;
}

/* A year: longer than any grant of GPU hours. An hour: charges are recorded each five minutes. */
static int set_usage_window(void *field, size_t size, const char *value)
{
    int64_t us = 0;
    bool is_none = strcmp(value, "none") == 0;
    if (!is_none && (!strpbrk(value, "dhms") || parse_duration(value, &us) < 0 ||
                        us < 3600 * SECOND_US || us > 365 * 86400 * SECOND_US))
        return -EINVAL;
    *(int64_t *)field = us;
    return 0;
}

/* "1s:1h,10s:1d", or "none". */
static int set_samples(void *field, size_t size, const char *value)
{
    struct samples_kept kept = {.n = 0};
    char text[64];
    for (const char *at = strcmp(value, "none") == 0 ? "" : value; *at;) {
        struct series_ring *ring = &kept.rings[kept.n];
        size_t n = strcspn(at, ",");
        char *colon;
        if (kept.n++ == SERIES_RINGS_MAX || !span_copy((struct span){at, n}, text, sizeof text) ||
            !(colon = strchr(text, ':')))
            return -EINVAL;
        *colon = '\0';
        if (set_period(&ring->step_us, 0, text) < 0 ||
            parse_duration(colon + 1, &ring->keep_us) < 0 || ring->keep_us < ring->step_us ||
            ring->keep_us / ring->step_us > SAMPLES_MAX)
            return -EINVAL;
        ring->keep_us -= ring->keep_us % ring->step_us;
        at += n + (at[n] == ',');
    }
    *(struct samples_kept *)field = kept;
    return 0;
}

static const struct {
    const char *name;
    int level;
} log_levels[] = {{"error", LOG_LEVEL_ERROR}, {"warning", LOG_LEVEL_WARNING},
    {"info", LOG_LEVEL_INFO}, {"debug", LOG_LEVEL_DEBUG}};

static int set_log_level(void *field, size_t size, const char *value)
{
    for (size_t i = 0; i < ARRAY_SIZE(log_levels); i++)
        if (strcmp(log_levels[i].name, value) == 0) {
            *(int *)field = log_levels[i].level;
            return 0;
        }
    return -EINVAL;
}

/* ---- to text ---- */

static void format_text(const void *field, char *text, size_t size)
{
    snprintf(text, size, "%s", (const char *)field);
}

static void format_exact_size(const void *field, char *text, size_t size)
{
    int64_t bytes = *(const int64_t *)field;
    if (bytes == 0)
        snprintf(text, size, "0");
    else if (bytes % GIB == 0)
        snprintf(text, size, "%" PRId64 "GiB", bytes / GIB);
    else if (bytes % MIB == 0)
        snprintf(text, size, "%" PRId64 "MiB", bytes / MIB);
    else
        snprintf(text, size, "%" PRId64 " bytes", bytes);
}

static void format_duration(const void *field, char *text, size_t size)
{
    int64_t us = *(const int64_t *)field, minute_us = 60 * SECOND_US;
    if (us && us % (1440 * minute_us) == 0)
        snprintf(text, size, "%" PRId64 "d", us / (1440 * minute_us));
    else if (us && us % (60 * minute_us) == 0)
        snprintf(text, size, "%" PRId64 "h", us / (60 * minute_us));
    else if (us > 2 * minute_us && us % minute_us == 0)
        snprintf(text, size, "%" PRId64 "m", us / minute_us);
    else if (us % SECOND_US == 0)
        snprintf(text, size, "%" PRId64 "s", us / SECOND_US);
    else if (us % MS_US == 0)
        snprintf(text, size, "%" PRId64 "ms", us / MS_US);
    else
        snprintf(text, size, "%" PRId64 "us", us);
}

static void format_usage_window(const void *field, char *text, size_t size)
{
    if (*(const int64_t *)field)
        format_duration(field, text, size);
    else
        snprintf(text, size, "none");
}

static void format_number(const void *field, char *text, size_t size)
{
    snprintf(text, size, "%.12g", *(const double *)field);
}

static void format_quantile(const void *field, char *text, size_t size)
{
    snprintf(text, size, "%g", quantile_percent(*(const enum quantile *)field) / 100.0);
}

static void format_count(const void *field, char *text, size_t size)
{
    snprintf(text, size, "%d", *(const int *)field);
}

static void format_flag(const void *field, char *text, size_t size)
{
    snprintf(text, size, "%s", *(const bool *)field ? "yes" : "no");
}

static void format_policy(const void *field, char *text, size_t size)
{
    const struct policy *policy;
    memcpy(&policy, field, sizeof policy);
    snprintf(text, size, "%s", policy->name);
}

static void format_sharing(const void *field, char *text, size_t size)
{
    snprintf(text, size, "%s", sharing_name(*(const enum sharing *)field));
}

static void format_node_auth(const void *field, char *text, size_t size)
{
    snprintf(text, size, "%s", node_auth_names[*(const enum node_auth *)field]);
}

static void format_statistic(const void *field, char *text, size_t size)
{
    snprintf(text, size, "%s", window_statistic_name(*(const enum window_statistic *)field));
}

static void format_order(const void *field, char *text, size_t size)
{
    snprintf(text, size, "%s", queue_order_name(*(const enum queue_order *)field));
}

static void format_samples(const void *field, char *text, size_t size)
{
    const struct samples_kept *kept = field;
    char step[32], keep[32];
    size_t used = (size_t)snprintf(text, size, "%s", kept->n ? "" : "none");
    for (size_t i = 0; i < kept->n && used < size; i++) {
        format_duration(&kept->rings[i].step_us, step, sizeof step);
        format_duration(&kept->rings[i].keep_us, keep, sizeof keep);
        used += (size_t)snprintf(text + used, size - used, "%s%s:%s", i ? "," : "", step, keep);
    }
}

static void format_log_level(const void *field, char *text, size_t size)
{
    int level = *(const int *)field;
    for (size_t i = 0; i < ARRAY_SIZE(log_levels); i++)
        if (log_levels[i].level == level)
            snprintf(text, size, "%s", log_levels[i].name);
}

/* ---- the kinds ---- */

const struct setting_kind setting_text = {set_text, format_text, "a shorter text"};
const struct setting_kind setting_web = {
    set_web, format_text, "none, on-demand or an address with a port such as 127.0.0.1:7480"};
const struct setting_kind setting_address = {
    set_address, format_text, "none or an address with a port such as 127.0.0.1:7481"};
const struct setting_kind setting_mail_server = {
    set_mail_server, format_text, "none or a URL such as smtp://127.0.0.1:25"};
const struct setting_kind setting_mail_address = {
    set_mail_address, format_text, "a mail address such as colloc@example.org"};
const struct setting_kind setting_alerts = {set_alerts, format_text,
    "none, a mail address, or a URL that begins with https:// or slack+https://"};
const struct setting_kind setting_host_port = {
    set_host_port, format_text, "none or a host and a port such as login1:7490"};
const struct setting_kind setting_user = {set_user, format_text, "a user of this machine"};
const struct setting_kind setting_size = {
    set_size, format_exact_size, "a size such as 512MiB or 5GiB"};
const struct setting_kind setting_request_memory = {
    set_request_memory, format_exact_size, "a size of at least 64MiB, such as 1GiB"};
const struct setting_kind setting_duration = {
    set_duration, format_duration, "a time such as 90s, 5m or 1:30:00"};
const struct setting_kind setting_period = {
    set_period, format_duration, "a time from 1ms to 1h, such as 90s or 5m"};
const struct setting_kind setting_fraction = {set_fraction, format_number, "a number from 0 to 1"};
const struct setting_kind setting_quantile = {set_quantile, format_quantile, "0.5, 0.9 or 0.99"};
const struct setting_kind setting_slowdown = {
    set_slowdown, format_number, "a number from 1 to 1000"};
const struct setting_kind setting_count = {
    set_count, format_count, "a whole number from 0 to 1000000"};
const struct setting_kind setting_percentage = {
    set_percentage, format_count, "a whole number from 0 to 100"};
const struct setting_kind setting_flag = {set_flag, format_flag, "yes or no"};
const struct setting_kind setting_policy = {set_policy, format_policy, "the name of a policy"};
const struct setting_kind setting_sharing = {set_sharing, format_sharing, "streams, mps or auto"};
const struct setting_kind setting_node_auth = {set_node_auth, format_node_auth, "munge or tls"};
const struct setting_kind setting_statistic = {
    set_statistic, format_statistic, "mean, p95 or ewma"};
const struct setting_kind setting_order = {set_order, format_order, "fair or fifo"};
const struct setting_kind setting_half_life = {
    set_half_life, format_duration, "a time from 1m to 3650d, such as 7d"};
const struct setting_kind setting_usage_window = {set_usage_window, format_usage_window,
    "none or a time from 1h to 365d with its unit, such as 30d"};
const struct setting_kind setting_samples = {
    set_samples, format_samples, "up to 8 pairs such as 1s:1h,10s:1d, or none"};
const struct setting_kind setting_log_level = {
    set_log_level, format_log_level, "error, warning, info or debug"};
static_assert(SERIES_RINGS_MAX == 8, "the text of setting_samples says how many");
