/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses moments. The forms do not overlap: a date has two dashes, a time of day a colon and no
 * unit, a duration ends in a unit. A bare number is refused, since `--since=2` could be two
 * minutes, hours or days. A moment to come has the same forms, of which some mean the other side of
 * now: "2h" is ahead, and "16:00" that has passed is tomorrow's.
 */
#include "base/moment.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"

/* Does all of `text` have strptime's form? Fields that the form lacks are those of `base`. */
static bool matches_form(const char *text, const char *form, const struct tm *base, struct tm *ret)
{
    *ret = *base;
    const char *end = strptime(text, form, ret);
    return end && *end == '\0';
}

static struct tm first_moment(struct tm day)
{
    day.tm_hour = day.tm_min = day.tm_sec = 0;
    day.tm_isdst = -1;
    return day;
}

/* Reads a date or a time of day. */
static bool read_calendar(const char *text, const struct tm *today, struct tm *ret)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%H:%M", "%H:%M:%S"};
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
        if (matches_form(text, forms[i], today, ret))
            return true;
    return false;
}

/* Converts a local time to seconds since 1970. Returns 0; -ERANGE for a day such as 30 February. */
static int to_seconds(struct tm local, int64_t *ret_s)
{
    int day = local.tm_mday;
    time_t moment = mktime(&local);
    if (moment == (time_t)-1 || local.tm_mday != day)
        return -ERANGE;
    *ret_s = moment;
    return 0;
}

/* "60", "2hours", "1day", as Slurm has them; or a duration. */
static int parse_slurm_span(const char *text, int64_t *ret_s)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = {{"", 1}, {"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400},
        {"week", 7 * 86400}};
    char digits[16];
    int64_t n, us;
    size_t used = strspn(text, "0123456789");
    for (size_t i = 0; i < ARRAY_SIZE(units) && used > 0; i++) {
        size_t size = strlen(units[i].name);
        bool is_unit = strncmp(text + used, units[i].name, size) == 0;
        const char *rest = text + used + (is_unit ? size : 0);
        if (!is_unit || (*rest && (size == 0 || strcmp(rest, "s") != 0)))
            continue;
        if (!span_copy((struct span){text, used}, digits, sizeof digits) ||
            parse_int64(digits, 0, INT64_C(1) << 32, &n) < 0)
            return -ERANGE;
        *ret_s = n * units[i].seconds;
        return 0;
    }
    int r = parse_duration(text, &us);
    *ret_s = r == 0 ? us / SECOND_US : 0;
    return r;
}

int moment_parse(const char *text, int64_t now_s, int64_t *ret_s)
{
    struct tm today, found;
    time_t now = now_s;
    int64_t ago_us, ago_s;
    if (strcmp(text, "now") == 0) {
        *ret_s = now_s;
        return 0;
    }
    if (strncmp(text, "now-", 4) == 0) {
        int r = parse_slurm_span(text + 4, &ago_s);
        *ret_s = r == 0 ? now_s - ago_s : 0;
        return r;
    }
    if (text[0] == '@')
        return parse_int64(text + 1, 0, INT64_C(1) << 40, ret_s);
    if (!localtime_r(&now, &today))
        return -ERANGE;
    today = first_moment(today);
    if (strcmp(text, "today") == 0 || strcmp(text, "midnight") == 0)
        return to_seconds(today, ret_s);
    if (strcmp(text, "yesterday") == 0) {
        struct tm before = today;
        before.tm_mday--;
        time_t moment = mktime(&before);
        *ret_s = moment;
        return moment == (time_t)-1 ? -ERANGE : 0;
    }
    if (read_calendar(text, &today, &found))
        return to_seconds(found, ret_s);
    bool has_unit = *text && strchr("smhdn", text[strlen(text) - 1]);
    if (!has_unit || parse_duration(text, &ago_us) < 0)
        return -EINVAL;
    *ret_s = now_s - ago_us / SECOND_US;
    return 0;
}

/* ---- moments to come ---- */

static int parse_day_after(const struct tm *day, int64_t *ret_s)
{
    struct tm next = *day;
    next.tm_mday++;
    next.tm_isdst = -1;
    time_t moment = mktime(&next);
    *ret_s = moment;
    return moment == (time_t)-1 ? -ERANGE : 0;
}

/* "16:00" that has passed today is tomorrow's. */
static int parse_time_of_day(const char *text, int64_t now_s, int64_t *ret_s)
{
    int r = moment_parse(text, now_s, ret_s);
    time_t moment = *ret_s;
    struct tm local;
    if (r < 0 || *ret_s >= now_s)
        return r;
    return localtime_r(&moment, &local) ? parse_day_after(&local, ret_s) : -ERANGE;
}

int moment_parse_ahead(const char *text, int64_t now_s, int64_t *ret_s)
{
    size_t skipped = strncmp(text, "now+", 4) == 0 ? 4 : 0;
    bool has_unit = *text && !strchr(text, ':') && !strchr(text, '-') &&
                    strchr("smhdn", text[strlen(text) - 1]) && strspn(text, "0123456789") > 0;
    struct tm today;
    time_t now = now_s;
    int64_t after_s;
    if (skipped || has_unit) {
        int r = parse_slurm_span(text + skipped, &after_s);
        *ret_s = r == 0 ? now_s + after_s : 0;
        return r;
    }
    if (strcmp(text, "yesterday") == 0)
        return -EINVAL;
    if (strcmp(text, "tomorrow") == 0) {
        if (!localtime_r(&now, &today))
            return -ERANGE;
        today = first_moment(today);
        return parse_day_after(&today, ret_s);
    }
    return strchr(text, ':') && !strchr(text, '-') ? parse_time_of_day(text, now_s, ret_s)
                                                   : moment_parse(text, now_s, ret_s);
}
