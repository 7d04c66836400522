/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of settings.def as a table, and their kinds. The defaults of the same rows are in
 * settings.c.
 */
#include "core/setting_table.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

const struct core_setting core_setting_table[CORE_SETTINGS] = {
#define CORE_SETTING(id, member, value_kind, otherwise, ...)                                       \
    [CORE_SETTING_##id] = {SETTING_AT(struct core_settings, member), &value_kind, __VA_ARGS__},
#include "core/settings.def"
};

static_assert(sizeof(enum window_statistic) == sizeof(int), "a choice is read and written as int");
static_assert(sizeof(enum queue_order) == sizeof(int), "and so is an order");
static_assert(sizeof(enum recovery_rule) == sizeof(int), "and so is a rule of recovery");
static_assert(sizeof(struct core_settings) == 464, /* with two *_delay_log, which stay 0 */
    "a setting without a row in settings.def would be lost to the replay");

static const char *name_in_scenarios(const struct core_setting *setting)
{
    return setting->scenario ? setting->scenario : setting->name;
}

const struct core_setting *core_setting_find(const char *name)
{
    for (int i = 0; i < CORE_SETTINGS; i++) {
        const char *its = name_in_scenarios(&core_setting_table[i]);
        if (its && strcmp(its, name) == 0)
            return &core_setting_table[i];
    }
    return NULL;
}

void *core_setting_at(const struct core_setting *setting, struct core_settings *settings)
{
    return (char *)settings + setting->offset;
}

struct setting core_setting_as(const struct core_setting *setting, size_t base, const char *help)
{
    return (struct setting){.name = setting->name,
        .offset = base + setting->offset,
        .size = setting->size,
        .kind = setting->kind,
        .argument = setting->argument,
        .help = help};
}

double core_setting_number_max(const struct core_setting *setting)
{
    return setting->kind->type == SETTING_SIZE ? 1e6 : setting->kind->max;
}

void core_setting_put_number(
    const struct core_setting *setting, double number, struct core_settings *settings)
{
    void *at = core_setting_at(setting, settings);
    if (setting->kind->type == SETTING_SIZE)
        *(int64_t *)at = (int64_t)(number * (double)GIB);
    else
        *(double *)at = number;
}

/* ---- the kinds ---- */

/* A year: longer than any grant of GPU hours. An hour: charges are recorded each five minutes. */
static int parse_usage_window(const char *text, void *member)
{
    int64_t us = 0;
    bool is_none = strcmp(text, "none") == 0;
    if (!is_none && (!strpbrk(text, "dhms") || parse_duration(text, &us) < 0 || us < HOUR_US ||
                        us > 365 * DAY_US))
        return -EINVAL;
    *(int64_t *)member = us;
    return 0;
}

static void format_usage_window(const void *member, char *text, size_t size)
{
    if (*(const int64_t *)member)
        setting_format(&setting_duration, member, text, size);
    else
        snprintf(text, size, "none");
}

const struct setting_kind setting_number = {SETTING_NUMBER, "a number", .max = 1e300};
const struct setting_kind setting_slowdown = {
    SETTING_NUMBER, "a number from 1 to 1000", .min = 1, .max = 1000};
const struct setting_kind setting_activity_sum = {SETTING_NUMBER, "a number from 0 to 2", .max = 2};
const struct setting_kind setting_statistic = {SETTING_CHOICE, "mean, p95 or ewma",
    .names = window_statistic_names, .n_names = WINDOW_STATISTICS};
const struct setting_kind setting_order = {
    SETTING_CHOICE, "fair or fifo", .names = queue_order_names, .n_names = QUEUE_ORDERS};
const struct setting_kind setting_recovery = {
    SETTING_CHOICE, "drain or stop-queue", .names = recovery_rule_names, .n_names = RECOVERY_RULES};
const struct setting_kind setting_half_life = {
    SETTING_TIME, "a time from 1m to 3650d, such as 7d", .min = MINUTE_US, .max = 3650 * DAY_US};
const struct setting_kind setting_usage_window = {SETTING_TIME,
    "none or a time from 1h to 365d with its unit, such as 30d", .parse = parse_usage_window,
    .format = format_usage_window};
