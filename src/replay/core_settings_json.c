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
#include <stdlib.h>

#include "base/array.h"
#include "base/text.h"

#define SETTING(field) offsetof(struct core_settings, field)

static const struct {
    const char *key;
    enum { REAL, INT64, INT, STATISTIC, FLAG, ORDER } type;
    size_t offset;
} fields[] = {
    {"smact_max", REAL, SETTING(conditions.smact_max)},
    {"min_free_bytes", INT64, SETTING(conditions.min_free_bytes)},
    {"margin_bytes", INT64, SETTING(conditions.margin_bytes)},
    {"sample_valid_us", INT64, SETTING(conditions.sample_valid_us)},
    {"tasks_per_gpu_max", INT, SETTING(conditions.tasks_per_gpu_max)},
    {"starting_max", INT, SETTING(conditions.starting_max)},
    {"slowdown_max", REAL, SETTING(conditions.slowdown_max)},
    {"server_power_max_w", INT, SETTING(conditions.server_power_max_w)},
    {"power_max", REAL, SETTING(conditions.power_max)},
    {"pcie_max_bytes", INT64, SETTING(conditions.pcie_max_bytes)},
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
    {"look_ahead", FLAG, SETTING(look_ahead)},
    {"make_room", FLAG, SETTING(make_room)},
    {"user_tasks_max", INT, SETTING(user_limits.tasks)},
    {"user_gpus_max", INT, SETTING(user_limits.gpus)},
    {"user_memory_max_bytes", INT64, SETTING(user_limits.memory_bytes)},
    {"user_usage_max_us", INT64, SETTING(user_limits.usage_us)},
    {"project_tasks_max", INT, SETTING(project_limits.tasks)},
    {"project_gpus_max", INT, SETTING(project_limits.gpus)},
    {"project_memory_max_bytes", INT64, SETTING(project_limits.memory_bytes)},
    {"project_usage_max_us", INT64, SETTING(project_limits.usage_us)},
    {"host_cpus", INT, SETTING(host.cpus)},
    {"host_memory_bytes", INT64, SETTING(host.memory_bytes)},
    {"slot_us", INT64, SETTING(slot_us)},
    {"suspend_unused_us", INT64, SETTING(suspend_unused_us)},
    {"service_hold_us", INT64, SETTING(service_hold_us)},
    {"suspension_fixed_us", INT64, SETTING(suspension_cost.fixed_us)},
    {"suspend_us_per_gib", INT64, SETTING(suspension_cost.suspend_us_per_gib)},
    {"resume_us_per_gib", INT64, SETTING(suspension_cost.resume_us_per_gib)},
    {"calibrated", FLAG, SETTING(is_calibrated)},
    {"switch_cost", REAL, SETTING(sharing_constants.switch_cost)},
    {"cold_cost", REAL, SETTING(sharing_constants.cold_cost)},
    {"launch_cost", REAL, SETTING(sharing_constants.launch_cost)},
    {"weight_power", REAL, SETTING(sharing_constants.weight_power)},
    {"cache_cost", REAL, SETTING(sharing_constants.cache_cost)},
    {"traffic_cost", REAL, SETTING(sharing_constants.traffic_cost)},
    {"order", ORDER, SETTING(order)},
    {"backfill", FLAG, SETTING(backfill)},
    {"expires_elsewhere", FLAG, SETTING(expires_elsewhere)},
    {"usage_half_life_us", INT64, SETTING(usage_half_life_us)},
    {"usage_window_us", INT64, SETTING(usage_window_us)},
};

static_assert(
    sizeof(enum window_statistic) == sizeof(int), "a statistic is read and written as a number");
static_assert(sizeof(enum queue_order) == sizeof(int), "and so is an order");
static_assert(sizeof(struct core_settings) == 352,
    "a setting that is not in the table would be lost to the replay");

static json_int_t read_integer(const void *at, size_t i)
{
    switch (fields[i].type) {
    case FLAG:
        return *(const bool *)at;
    case INT:
    case STATISTIC:
    case ORDER:
        return *(const int *)at;
    default:
        return *(const int64_t *)at;
    }
}

/* {"projects": [["default", 1], ...], "users": [[uid, project, shares], ...]} */
static json_t *encode_shares(const struct share_table *table)
{
    json_t *projects = json_array(), *users = json_array();
    for (int i = 0; i < table->n_projects; i++)
        json_array_append_new(
            projects, json_pack("[s, i]", table->projects[i].name, table->projects[i].shares));
    for (int i = 0; i < table->n_users; i++) {
        const struct user_shares *user = &table->users[i];
        json_array_append_new(
            users, json_pack("[I, i, i]", (json_int_t)user->uid, user->project, user->shares));
    }
    return json_pack("{s:o, s:o}", "projects", projects, "users", users);
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
    if (!failed && settings->shares && settings->shares->n_users + settings->shares->n_projects > 1)
        failed = json_object_set_new(object, "shares", encode_shares(settings->shares));
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

static const int64_t greatest[] = {[INT64] = EVENT_NUMBER_MAX,
    [INT] = INT_MAX,
    [STATISTIC] = WINDOW_STATISTICS - 1,
    [FLAG] = 1,
    [ORDER] = QUEUE_ORDERS - 1};

static bool is_int(int type)
{
    return type == INT || type == STATISTIC || type == ORDER;
}

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
    else if (is_int(fields[i].type))
        *(int *)at = (int)integer;
    else
        *(int64_t *)at = integer;
    return 0;
}

static int decode_projects(const json_t *list, struct share_table *table)
{
    size_t i;
    json_t *each;
    table->n_projects = 0;
    json_array_foreach(list, i, each) {
        const char *name;
        struct share_project *project = &table->projects[i];
        if (i == PROJECTS_MAX || json_unpack(each, "[s, i]", &name, &project->shares) < 0 ||
            !span_copy(span_of(name), project->name, sizeof project->name) || project->shares < 1)
            return -EINVAL;
        table->n_projects++;
    }
    return table->n_projects ? 0 : -EINVAL;
}

static int decode_users(const json_t *list, struct share_table *table)
{
    size_t i;
    json_t *each;
    json_array_foreach(list, i, each) {
        json_int_t uid;
        struct user_shares *user = &table->users[i];
        if (i == SHARE_USERS_MAX ||
            json_unpack(each, "[I, i, i]", &uid, &user->project, &user->shares) < 0 || uid < 0 ||
            uid > UINT32_MAX || user->shares < 1 || user->project < 0 ||
            user->project >= table->n_projects || (i > 0 && uid <= user[-1].uid))
            return -EINVAL;
        user->uid = (uint32_t)uid;
        table->n_users++;
    }
    return 0;
}

static int decode_shares(
    const json_t *object, struct fault *fault, const struct share_table **ret_table)
{
    if (!object)
        return 0;
    struct share_table *table = calloc(1, sizeof *table);
    if (!table)
        return fault_set(fault, ENOMEM, "out of memory");
    if (decode_projects(json_object_get(object, "projects"), table) < 0 ||
        decode_users(json_object_get(object, "users"), table) < 0) {
        free(table);
        return fault_set(fault, EINVAL, "setting shares: not understood");
    }
    *ret_table = table;
    return 0;
}

void core_settings_release(struct core_settings *settings)
{
    free((void *)(uintptr_t)settings->shares);
    settings->shares = NULL;
}

int core_settings_decode(const json_t *object, store_find_policy *find_policy, struct fault *fault,
    struct core_settings *ret_settings)
{
    const char *name = json_string_value(json_object_get(object, "policy"));
    int r = 0;
    *ret_settings = core_settings_default();
    ret_settings->order = ORDER_FIFO; /* records from before there were orders and charges */
    ret_settings->usage_half_life_us = 0;
    ret_settings->policy = name ? find_policy(name) : NULL;
    if (!ret_settings->policy)
        return fault_set(
            fault, EINVAL, "setting policy: '%.60s' is not known here", name ? name : "");
    ret_settings->backfill = ret_settings->policy->longest_first; /* others had none then */
    for (size_t i = 0; i < ARRAY_SIZE(fields) && r == 0; i++)
        r = decode_field(json_object_get(object, fields[i].key), i, fault, ret_settings);
    return r == 0 ? decode_shares(json_object_get(object, "shares"), fault, &ret_settings->shares)
                  : r;
}
