/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses moments. The forms do not overlap: a date has two dashes, a time of day a colon and no
 * unit, a duration ends in a unit. A bare number is refused, since `--since=2` could be two
 * minutes, hours or days.
 */
#include "cli/moment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
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

int moment_parse(const char *text, int64_t now_s, int64_t *ret_s)
{
    struct tm today, found;
    time_t now = now_s;
    int64_t ago_us;
    if (strcmp(text, "now") == 0) {
        *ret_s = now_s;
        return 0;
    }
    if (text[0] == '@')
        return parse_int64(text + 1, 0, INT64_C(1) << 40, ret_s);
    if (!localtime_r(&now, &today))
        return -ERANGE;
    today = first_moment(today);
    if (strcmp(text, "today") == 0)
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
