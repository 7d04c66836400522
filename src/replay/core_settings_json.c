/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of the settings: key, type, and where in struct core_settings. The policy, which is
 * written by name, comes before them.
 */
#include "replay/core_settings_json.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>

#include "base/array.h"

#define SETTING(field) offsetof(struct core_settings, field)

static const struct {
    const char *key;
    enum { REAL, INT64, INT, STATISTIC, FLAG } type;
    size_t offset;
} fields[] = {
    {"smact_max", REAL, SETTING(conditions.smact_max)},
    {"min_free_bytes", INT64, SETTING(conditions.min_free_bytes)},
    {"margin_bytes", INT64, SETTING(conditions.margin_bytes)},
    {"sample_valid_us", INT64, SETTING(conditions.sample_valid_us)},
    {"tasks_per_gpu_max", INT, SETTING(conditions.tasks_per_gpu_max)},
    {"slowdown_max", REAL, SETTING(conditions.slowdown_max)},
    {"window_us", INT64, SETTING(window_us)},
    {"statistic", STATISTIC, SETTING(statistic)},
    {"settle_us", INT64, SETTING(settle_us)},
    {"settle_max_us", INT64, SETTING(settle_max_us)},
    {"recovery_step_bytes", INT64, SETTING(recovery_step_bytes)},
    {"recoveries_max", INT, SETTING(recoveries_max)},
    {"mps_users_together", FLAG, SETTING(conditions.mps_users_together)},
    {"requeues_max", INT, SETTING(requeues_max)},
    {"filler_smact", REAL, SETTING(filler_smact)},
    {"filler_percent", INT, SETTING(filler_percent)},
    {"mps_mem_limit", FLAG, SETTING(mps_mem_limit)},
    {"can_suspend", FLAG, SETTING(can_suspend)},
    {"can_pause", FLAG, SETTING(can_pause)},
    {"preload", FLAG, SETTING(preload)},
    {"preempt", FLAG, SETTING(preempt)},
    {"suspension_fixed_us", INT64, SETTING(suspension_cost.fixed_us)},
    {"suspend_us_per_gib", INT64, SETTING(suspension_cost.suspend_us_per_gib)},
    {"resume_us_per_gib", INT64, SETTING(suspension_cost.resume_us_per_gib)},
};

static_assert(
    sizeof(enum window_statistic) == sizeof(int), "a statistic is read and written as a number");
static_assert(sizeof(struct core_settings) == 152,
    "a setting that is not in the table would be lost to the replay");

static json_int_t read_integer(const void *at, size_t i)
{
    switch (fields[i].type) {
    case FLAG:
        return *(const bool *)at;
    case INT:
    case STATISTIC:
        return *(const int *)at;
    default:
        return *(const int64_t *)at;
    }
}

json_t *core_settings_encode(const struct core_settings *settings)
{
    json_t *object = json_pack("{s:s}", "policy", settings->policy->name);
    int failed = !object;
    for (size_t i = 0; i < ARRAY_SIZE(fields) && !failed; i++) {
        const void *at = (const char *)settings + fields[i].offset;
        if (fields[i].type == REAL)
            failed = json_object_set_new(object, fields[i].key, json_real(*(const double *)at));
        else
            failed = json_object_set_new(object, fields[i].key, json_integer(read_integer(at, i)));
    }
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

static const int64_t greatest[] = {
    [INT64] = EVENT_NUMBER_MAX, [INT] = INT_MAX, [STATISTIC] = WINDOW_STATISTICS - 1, [FLAG] = 1};

static int decode_field(
    const json_t *value, size_t i, struct fault *fault, struct core_settings *settings)
{
    void *at = (char *)settings + fields[i].offset;
    json_int_t integer = json_integer_value(value);
    if (!value)
        return 0; /* a setting that the record lacks has its default */
    if (fields[i].type == REAL ? !json_is_number(value) : !json_is_integer(value))
        return fault_set(fault, EINVAL, "setting %s: not a number", fields[i].key);
    if (fields[i].type != REAL && (integer < 0 || integer > greatest[fields[i].type]))
        return fault_set(fault, EINVAL, "setting %s: out of range", fields[i].key);
    if (fields[i].type == REAL)
        *(double *)at = json_number_value(value);
    else if (fields[i].type == FLAG)
        *(bool *)at = integer != 0;
    else if (fields[i].type == INT || fields[i].type == STATISTIC)
        *(int *)at = (int)integer;
    else
        *(int64_t *)at = integer;
    return 0;
}

int core_settings_decode(const json_t *object, store_find_policy *find_policy, struct fault *fault,
    struct core_settings *ret_settings)
{
    const char *name = json_string_value(json_object_get(object, "policy"));
    int r = 0;
    *ret_settings = core_settings_default();
    ret_settings->policy = name ? find_policy(name) : NULL;
    if (!ret_settings->policy)
        return fault_set(
            fault, EINVAL, "setting policy: '%.60s' is not known here", name ? name : "");
    for (size_t i = 0; i < ARRAY_SIZE(fields) && r == 0; i++)
        r = decode_field(json_object_get(object, fields[i].key), i, fault, ret_settings);
    return r;
}
