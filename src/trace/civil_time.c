/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calendar in plain steps, year by year and month by month: the C library's functions depend on
 * the time zone, or accept texts that are not dates.
 */
#include "trace/civil_time.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum { DAY_S = 86400, YEAR_FIRST = 1970, YEAR_LAST = 2199 };

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_of_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

/* Reads `digits` digits off the front of `*text`, and `mark` if it follows. Returns the number,
 * or -1 if a digit is missing. */
static int read_digits(const char **text, int digits, char mark)
{
    int value = 0;
    for (int i = 0; i < digits; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return -1;
        value = value * 10 + (**text - '0');
    }
    if (mark && **text == mark)
        (*text)++;
    return value;
}

/* Reads "Z", "+01:00", "-0530" or nothing. Returns the seconds by which the zone's clocks are ahead
 * of UTC, or INT_MIN: it is no zone. */
static int read_zone(const char *text)
{
    int sign = *text == '-' ? -1 : 1, hours, minutes = 0;
    if (!*text || strcmp(text, "Z") == 0)
        return 0;
    if (*text != '+' && *text != '-')
        return INT_MIN;
    text++;
    hours = read_digits(&text, 2, ':');
    if (*text)
        minutes = read_digits(&text, 2, '\0');
    return *text || hours < 0 || hours > 14 || minutes < 0 || minutes > 59
               ? INT_MIN
               : sign * (hours * 3600 + minutes * 60);
}

/* Skips ".", and digits: a fraction of a second. */
static const char *skip_fraction(const char *text)
{
    return *text == '.' ? text + 1 + strspn(text + 1, "0123456789") : text;
}

int civil_time_parse(const char *text, int64_t *ret_us)
{
    int year = read_digits(&text, 4, '-'), month = read_digits(&text, 2, '-'),
        day = read_digits(&text, 2, '\0');
    int hour = 0, minute = 0, second = 0, zone_s = 0;
    if (year < YEAR_FIRST || year > YEAR_LAST || month < 1 || month > 12 || day < 1 ||
        day > days_of_month(year, month))
        return -EINVAL;
    if (*text == ' ' || *text == 'T') {
        text++;
        hour = read_digits(&text, 2, ':');
        minute = read_digits(&text, 2, ':');
        if (*text && !strchr("+-Z", *text))
            second = read_digits(&text, 2, '\0');
        zone_s = read_zone(skip_fraction(text));
    } else if (*text) {
        return -EINVAL;
    }
    if (zone_s == INT_MIN || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
        second > 60)
        return -EINVAL;
    int64_t days = day - 1;
    for (int past = YEAR_FIRST; past < year; past++)
        days += 365 + is_leap(past);
    for (int past = 1; past < month; past++)
        days += days_of_month(year, past);
    int64_t seconds = days * DAY_S + hour * 3600 + minute * 60 + second - zone_s;
    if (seconds < 0)
        return -EINVAL;
    *ret_us = seconds * SECOND_US;
    return 0;
}

const char *civil_time_format(int64_t us, char *buffer, size_t size)
{
    int64_t seconds = us / SECOND_US, days = seconds / DAY_S;
    int year = YEAR_FIRST, month = 1, rest = (int)(seconds % DAY_S);
    for (; days >= 365 + is_leap(year); year++)
        days -= 365 + is_leap(year);
    for (; days >= days_of_month(year, month); month++)
        days -= days_of_month(year, month);
    snprintf(buffer, size, "%04d-%02d-%02d %02d:%02d:%02d", year, month, (int)days + 1, rest / 3600,
        rest / 60 % 60, rest % 60);
    return buffer;
}
