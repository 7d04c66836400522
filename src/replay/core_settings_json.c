/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys are those of the core's table of settings, in its order. The policy, which is written by
 * name, comes before them; the users' shares, which are lists, come after them.
 */
#include "replay/core_settings_json.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "core/setting_table.h"

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

static json_t *encode_setting(const struct core_setting *setting, const void *at)
{
    return setting->kind->type == SETTING_NUMBER ? json_real(*(const double *)at)
                                                 : json_integer(setting_integer(setting->kind, at));
}

json_t *core_settings_encode(const struct core_settings *settings)
{
    json_t *object = json_pack("{s:s}", "policy", settings->policy->name);
    int failed = !object;
    for (size_t i = 0; i < CORE_SETTINGS && !failed; i++) {
        const struct core_setting *setting = &core_setting_table[i];
        const void *at = (const char *)settings + setting->offset;
        failed = json_object_set_new(object, setting->key, encode_setting(setting, at));
    }
    if (!failed && settings->shares && settings->shares->n_users + settings->shares->n_projects > 1)
        failed = json_object_set_new(object, "shares", encode_shares(settings->shares));
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

/* A record may be of other limits than those of today: the range is that of the member. */
static int decode_integer(const struct core_setting *setting, const json_t *value,
    struct fault *fault, struct core_settings *settings)
{
    int64_t max = setting_integer_max(setting->kind);
    json_int_t integer = json_integer_value(value);
    if (!json_is_integer(value))
        return fault_set(fault, EINVAL, "setting %s: not a number", setting->key);
    if (integer < 0 || integer > (max < EVENT_NUMBER_MAX ? max : EVENT_NUMBER_MAX))
        return fault_set(fault, EINVAL, "setting %s: out of range", setting->key);
    setting_put_integer(setting->kind, integer, core_setting_at(setting, settings));
    return 0;
}

/* A setting that the record lacks has its default. */
static int decode_setting(const struct core_setting *setting, const json_t *value,
    struct fault *fault, struct core_settings *settings)
{
    if (!value)
        return 0;
    if (setting->kind->type != SETTING_NUMBER)
        return decode_integer(setting, value, fault, settings);
    if (!json_is_number(value))
        return fault_set(fault, EINVAL, "setting %s: not a number", setting->key);
    *(double *)core_setting_at(setting, settings) = json_number_value(value);
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
    for (size_t i = 0; i < CORE_SETTINGS && r == 0; i++) {
        const struct core_setting *setting = &core_setting_table[i];
        r = decode_setting(setting, json_object_get(object, setting->key), fault, ret_settings);
    }
    return r == 0 ? decode_shares(json_object_get(object, "shares"), fault, &ret_settings->shares)
                  : r;
}
