/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calendar in plain steps, year by year and month by month: the C library's functions depend on
 * the time zone, or accept texts that are not dates.
 */
#include "trace/civil_time.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

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

int civil_time_parse(const char *text, int64_t *ret_us)
{
    int year = read_digits(&text, 4, '-'), month = read_digits(&text, 2, '-'),
        day = read_digits(&text, 2, '\0');
    int hour = 0, minute = 0, second = 0;
    if (year < YEAR_FIRST || year > YEAR_LAST || month < 1 || month > 12 || day < 1 ||
        day > days_of_month(year, month))
        return -EINVAL;
    if (*text == ' ' || *text == 'T') {
        text++;
        hour = read_digits(&text, 2, ':');
        minute = read_digits(&text, 2, ':');
        second = *text ? read_digits(&text, 2, '\0') : 0;
    }
    if (*text || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return -EINVAL;
    int64_t days = day - 1;
    for (int past = YEAR_FIRST; past < year; past++)
        days += 365 + is_leap(past);
    for (int past = 1; past < month; past++)
        days += days_of_month(year, past);
    *ret_us = (days * DAY_S + hour * 3600 + minute * 60 + second) * SECOND_US;
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
