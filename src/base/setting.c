/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses and prints values by their kind. The type decides the form, the kind the range:
 *
 *     setting_period   a time from 1ms to 1h     "90s" <-> 90000000
 *     setting_size     any number of bytes       "5GiB" <-> 5368709120
 *
 * So a parser is written once for each type, and a kind is a row.
 */
#include "base/setting.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"

/* ---- from text ---- */

/* YAML writes the same in three ways. */
static int parse_flag(const char *text, bool *ret)
{
    static const char *const words[][2] = {{"no", "yes"}, {"false", "true"}, {"off", "on"}};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        for (int value = 0; value < 2; value++)
            if (strcasecmp(text, words[i][value]) == 0) {
                *ret = value;
                return 0;
            }
    return -EINVAL;
}

static int parse_count(const struct setting_kind *kind, const char *text, int *ret)
{
    int64_t count;
    if (parse_int64(
            text, (int64_t)kind->min, kind->max > 0 ? (int64_t)kind->max : INT_MAX, &count) < 0)
        return -EINVAL;
    *ret = (int)count;
    return 0;
}

static int parse_choice(const struct setting_kind *kind, const char *text, int *ret)
{
    int place = span_place(span_of(text), kind->names, (size_t)kind->n_names);
    if (place < 0)
        return -EINVAL;
    *ret = place;
    return 0;
}

static int parse_amount(const struct setting_kind *kind, const char *text, int64_t *ret)
{
    int64_t amount;
    int r = kind->type == SETTING_SIZE ? parse_size(text, &amount) : parse_duration(text, &amount);
    if (r < 0 || (double)amount < kind->min || (kind->max > 0 && (double)amount > kind->max))
        return -EINVAL;
    *ret = amount;
    return 0;
}

static int parse_text(const struct setting_kind *kind, const char *text, char *ret, size_t size)
{
    size_t n = strlen(text) + 1;
    if (n > size || (kind->is_valid && !kind->is_valid(text)))
        return -EINVAL;
    memcpy(ret, text, n);
    return 0;
}

int setting_parse(const struct setting_kind *kind, const char *text, void *member, size_t size)
{
    if (kind->parse)
        return kind->parse(text, member);
    switch (kind->type) {
    case SETTING_FLAG:
        return parse_flag(text, member);
    case SETTING_COUNT:
        return parse_count(kind, text, member);
    case SETTING_CHOICE:
        return parse_choice(kind, text, member);
    case SETTING_NUMBER:
        return parse_double(text, kind->min, kind->max, member) < 0 ? -EINVAL : 0;
    case SETTING_SIZE:
    case SETTING_TIME:
        return parse_amount(kind, text, member);
    case SETTING_TEXT:
        return parse_text(kind, text, member, size);
    case SETTING_OTHER:
        break;
    }
    return -EINVAL;
}

/* ---- to text ---- */

/* A unit and how much of the member it is; the first that leaves no rest is printed. */
struct unit {
    const char *name;
    int64_t amount;
    int64_t at_least; /* as an amount: a smaller one is printed in a smaller unit */
};

static void format_amount(const struct unit *unit, int64_t amount, char *text, size_t size)
{
    while (amount % unit->amount != 0 || amount < unit->at_least)
        unit++;
    snprintf(text, size, "%" PRId64 "%s", amount / unit->amount, unit->name);
}

static void format_size_exactly(int64_t bytes, char *text, size_t size)
{
    static const struct unit units[] = {
        {"GiB", GIB, 1}, {"MiB", MIB, 1}, {" bytes", 1, 1}, {"", 1, INT64_MIN}};
    format_amount(units, bytes, text, size);
}

/* Two minutes are still written as 120s: 90s is the usual window. */
static void format_time(int64_t us, char *text, size_t size)
{
    static const struct unit units[] = {{"d", DAY_US, 1}, {"h", HOUR_US, 1},
        {"m", MINUTE_US, 3 * MINUTE_US}, {"s", SECOND_US, INT64_MIN}, {"ms", MS_US, INT64_MIN},
        {"us", 1, INT64_MIN}};
    format_amount(units, us, text, size);
}

void setting_format(const struct setting_kind *kind, const void *member, char *text, size_t size)
{
    if (kind->format) {
        kind->format(member, text, size);
        return;
    }
    switch (kind->type) {
    case SETTING_FLAG:
        snprintf(text, size, "%s", *(const bool *)member ? "yes" : "no");
        break;
    case SETTING_COUNT:
        snprintf(text, size, "%d", *(const int *)member);
        break;
    case SETTING_CHOICE:
        snprintf(text, size, "%s", kind->names[*(const int *)member]);
        break;
    case SETTING_NUMBER:
        snprintf(text, size, "%.12g", *(const double *)member);
        break;
    case SETTING_SIZE:
        format_size_exactly(*(const int64_t *)member, text, size);
        break;
    case SETTING_TIME:
        format_time(*(const int64_t *)member, text, size);
        break;
    case SETTING_TEXT:
        snprintf(text, size, "%s", (const char *)member);
        break;
    case SETTING_OTHER:
        break;
    }
}

/* ---- as integers ---- */

int64_t setting_integer(const struct setting_kind *kind, const void *member)
{
    if (kind->type == SETTING_FLAG)
        return *(const bool *)member;
    if (kind->type == SETTING_COUNT || kind->type == SETTING_CHOICE)
        return *(const int *)member;
    return *(const int64_t *)member;
}

void setting_put_integer(const struct setting_kind *kind, int64_t value, void *member)
{
    if (kind->type == SETTING_FLAG)
        *(bool *)member = value != 0;
    else if (kind->type == SETTING_COUNT || kind->type == SETTING_CHOICE)
        *(int *)member = (int)value;
    else
        *(int64_t *)member = value;
}

int64_t setting_integer_max(const struct setting_kind *kind)
{
    switch (kind->type) {
    case SETTING_FLAG:
        return 1;
    case SETTING_CHOICE:
        return kind->n_names - 1;
    case SETTING_COUNT:
        return INT_MAX;
    default:
        return INT64_MAX;
    }
}

/* ---- whole hours ---- */

static int parse_hours(const char *text, void *member)
{
    int64_t hours;
    if (parse_int64(text, 0, 1000000, &hours) < 0)
        return -EINVAL;
    *(int64_t *)member = hours * HOUR_US;
    return 0;
}

static void format_hours(const void *member, char *text, size_t size)
{
    snprintf(text, size, "%" PRId64, *(const int64_t *)member / HOUR_US);
}

/* ---- the kinds ---- */

const struct setting_kind setting_text = {.type = SETTING_TEXT, .expects = "a shorter text"};
const struct setting_kind setting_size = {
    .type = SETTING_SIZE, .expects = "a size such as 512MiB or 5GiB"};
const struct setting_kind setting_duration = {
    .type = SETTING_TIME, .expects = "a time such as 90s, 5m or 1:30:00"};
const struct setting_kind setting_period = {
    SETTING_TIME, "a time from 1ms to 1h, such as 90s or 5m", .min = MS_US, .max = HOUR_US};
const struct setting_kind setting_hours = {
    SETTING_TIME, "a whole number from 0 to 1000000", .parse = parse_hours, .format = format_hours};
const struct setting_kind setting_fraction = {SETTING_NUMBER, "a number from 0 to 1", .max = 1};
const struct setting_kind setting_count = {
    SETTING_COUNT, "a whole number from 0 to 1000000", .max = 1000000};
const struct setting_kind setting_percentage = {
    SETTING_COUNT, "a whole number from 0 to 100", .max = 100};
const struct setting_kind setting_flag = {.type = SETTING_FLAG, .expects = "yes or no"};
