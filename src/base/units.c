/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and formats numbers, sizes and durations. Parsers accept whole texts only; their values
 * never overflow. */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/clock.h"

int parse_int64(const char *text, int64_t min, int64_t max, int64_t *ret_value)
{
    char *end;
    if (!isdigit((unsigned char)text[text[0] == '-']))
        return -EINVAL;
    errno = 0;
    intmax_t value = strtoimax(text, &end, 10);
    if (*end)
        return -EINVAL;
    if (errno == ERANGE || value < min || value > max)
        return -ERANGE;
    *ret_value = value;
    return 0;
}

/* Parses a plain decimal number (no hex, inf or nan) at the front of `text`; *ret_rest is what
 * follows. */
static int parse_number(const char *text, double *ret_value, const char **ret_rest)
{
    size_t n = strspn(text, "0123456789.");
    if (n == 0 || n > 64 || !strpbrk(text, "0123456789") || strcspn(text, "0123456789") >= n)
        return -EINVAL;
    char copy[72];
    char *end;
    memcpy(copy, text, n);
    copy[n] = '\0';
    *ret_value = strtod(copy, &end);
    if (*end)
        return -EINVAL;
    *ret_rest = text + n;
    return 0;
}

int parse_double(const char *text, double min, double max, double *ret_value)
{
    const char *first = text + (text[0] == '-');
    first += first[0] == '.';
    if (!isdigit((unsigned char)*first) || text[strspn(text, "0123456789.eE+-")])
        return -EINVAL;
    char *end;
    double value = strtod(text, &end);
    if (*end)
        return -EINVAL;
    if (!isfinite(value) || value < min || value > max)
        return -ERANGE;
    *ret_value = value;
    return 0;
}

static int scale_value(double value, double unit, int64_t *ret)
{
    double result = value * unit;
    if (result >= 9.2e18)
        return -ERANGE;
    *ret = (int64_t)llround(result);
    return 0;
}

int parse_size(const char *text, int64_t *ret_bytes)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {
        {"", 0x1p20},
        {"B", 1},
        {"K", 0x1p10},
        {"kB", 1e3},
        {"KiB", 0x1p10},
        {"M", 0x1p20},
        {"MB", 1e6},
        {"MiB", 0x1p20},
        {"G", 0x1p30},
        {"GB", 1e9},
        {"GiB", 0x1p30},
        {"T", 0x1p40},
        {"TB", 1e12},
        {"TiB", 0x1p40},
    };
    double value;
    const char *unit;
    if (parse_number(text, &value, &unit) < 0)
        return -EINVAL;
    while (*unit == ' ')
        unit++;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (strcasecmp(unit, units[i].name) == 0)
            return scale_value(value, units[i].bytes, ret_bytes);
    return -EINVAL;
}

/* Removes up to nine digits from the front of `*text`: enough for any duration, and their sums
 * cannot overflow. */
static int parse_digits(const char **text, int64_t *ret)
{
    size_t digits = strspn(*text, "0123456789");
    if (digits == 0)
        return -EINVAL;
    if (digits > 9)
        return -ERANGE;
    *ret = strtoll(*text, NULL, 10);
    *text += digits;
    return 0;
}

static int parse_clock(const char *text, int64_t *ret_us)
{
    int64_t days = 0, part[3];
    int n = 0;
    const char *dash = strchr(text, '-');
    if (dash) {
        int r = parse_digits(&text, &days);
        if (r < 0 || text != dash)
            return r < 0 ? r : -EINVAL;
        text = dash + 1;
    }
    for (;; text++) {
        int r = n < 3 ? parse_digits(&text, &part[n++]) : -EINVAL;
        if (r < 0)
            return r;
        if (*text != ':')
            break;
    }
    if (*text)
        return -EINVAL;

    int64_t seconds;
    if (dash)
        seconds = days * 86400 + part[0] * 3600 + (n > 1 ? part[1] * 60 : 0) +
                  (n > 2 ? part[2] : 0);
    else if (n == 1)
        seconds = part[0] * 60;
    else
        seconds = n == 2 ? part[0] * 60 + part[1] : part[0] * 3600 + part[1] * 60 + part[2];
    if (seconds > INT64_MAX / SECOND_US)
        return -ERANGE;
    *ret_us = seconds * SECOND_US;
    return 0;
}

/* Removes the unit at the front of `*text` and returns its microseconds; 0: there is none. */
static double take_unit(const char **text)
{
    static const struct {
        const char *name;
        double us;
    } units[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"min", 60e6}, {"h", 3600e6},
        {"d", 86400e6}};
    size_t n = strspn(*text, "abcdefghijklmnopqrstuvwxyz");
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (strlen(units[i].name) == n && strncmp(*text, units[i].name, n) == 0) {
            *text += n;
            return units[i].us;
        }
    return 0;
}

int parse_duration(const char *text, int64_t *ret_us)
{
    const char *rest = text;
    double sum_us = 0, last_unit = INFINITY;
    do { /* "1d", "8h30m": each unit smaller than the one before */
        double value;
        if (parse_number(rest, &value, &rest) < 0)
            return parse_clock(text, ret_us);
        double unit = take_unit(&rest);
        if (unit == 0 || unit >= last_unit)
            return parse_clock(text, ret_us);
        sum_us += value * unit;
        last_unit = unit;
    } while (*rest);
    return scale_value(sum_us, 1, ret_us);
}

const char *format_size(int64_t bytes, char *buffer, size_t size)
{
    double magnitude = bytes < 0 ? -(double)bytes : (double)bytes;
    if (magnitude >= (double)GIB)
        snprintf(buffer, size, "%.1f GiB", (double)bytes / (double)GIB);
    else
        snprintf(buffer, size, "%.1f MiB", (double)bytes / (double)MIB);
    return buffer;
}

const char *format_elapsed(int64_t us, char *buffer, size_t size)
{
    int64_t s = us < 0 ? 0 : us / SECOND_US;
    int64_t days = s / 86400, hours = s / 3600 % 24, minutes = s / 60 % 60;
    int seconds = (int)(s % 60);
    if (days)
        snprintf(
            buffer, size, "%" PRId64 "-%02d:%02d:%02d", days, (int)hours, (int)minutes, seconds);
    else if (hours)
        snprintf(buffer, size, "%d:%02d:%02d", (int)hours, (int)minutes, seconds);
    else
        snprintf(buffer, size, "%d:%02d", (int)minutes, seconds);
    return buffer;
}
