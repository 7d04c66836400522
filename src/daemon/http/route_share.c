/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/share: the rank of each user, and why one task is before another.
 *
 * It lists the users with usage or tasks. All users may see all of it, since it explains why a task
 * waits.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "daemon/http/public_json.h"
#include "daemon/http/routes.h"

struct counts {
    int running, pending;
};

/* Of each user, in the core's order. Returns NULL when memory is out. */
static struct counts *count_tasks(const struct core *core)
{
    int n = core_user_count(core);
    struct counts *counts = calloc((size_t)n + 1, sizeof *counts);
    for (const struct task *task = core_next_task(core, 0); task && counts;
         task = core_next_task(core, task->id)) {
        int i = core_user_number(core, task->uid);
        bool has_attempt = task_state_has_attempt(task->state);
        counts[i].running += has_attempt;
        counts[i].pending += !has_attempt && !task_state_is_done(task->state);
    }
    return counts;
}

static json_t *user_json(
    struct http *http, const struct user_standing *user, const struct counts *counts)
{
    const struct share_table *table = core_get_settings(http->parts.core)->shares;
    return json_pack("{s:s, s:I, s:s, s:i, s:f, s:f, s:i, s:i, s:i, s:i, s:o}", "user",
        names_of_uid(http->parts.names, user->uid)->name, "uid", (json_int_t)user->uid, "project",
        user->project, "shares", user->shares, "usage", (double)user->usage_us / (double)HOUR_US,
        "window_usage", (double)user->window_us / (double)HOUR_US, "fair_rank", user->fair_rank,
        "gpus", user->n_gpus, "running", counts->running, "pending", counts->pending,
        "max_slowdown", json_reading(share_table_promise(table, user->uid), 1));
}

static json_t *projects_json(const struct core *core, int64_t now_us)
{
    const struct share_table *table = core_get_settings(core)->shares;
    json_t *list = json_array();
    for (int i = 0; i < table->n_projects; i++) {
        double used_us = 0, window_us = 0;
        for (int k = 0; k < core_user_count(core); k++) {
            struct user_standing user = core_user_standing(core, k, now_us);
            bool is_of_it = strcmp(user.project, table->projects[i].name) == 0;
            used_us += is_of_it ? (double)user.usage_us : 0;
            window_us += is_of_it ? (double)user.window_us : 0;
        }
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:f, s:f}", "project", table->projects[i].name, "shares",
                      table->projects[i].shares, "usage", used_us / (double)HOUR_US, "window_usage",
                      window_us / (double)HOUR_US));
    }
    return list;
}

/* "12,15" */
static int parse_pair(const char *text, uint64_t *ret_first, uint64_t *ret_other)
{
    char first_text[24];
    int64_t first, other;
    const char *comma = strchr(text, ',');
    if (!comma ||
        !span_copy((struct span){text, (size_t)(comma - text)}, first_text, sizeof first_text) ||
        parse_int64(first_text, 1, INT64_MAX, &first) < 0 ||
        parse_int64(comma + 1, 1, INT64_MAX, &other) < 0)
        return -1;
    *ret_first = (uint64_t)first;
    *ret_other = (uint64_t)other;
    return 0;
}

void route_share(void *context, struct api_request *request)
{
    struct http *http = context;
    const struct core *core = http->parts.core;
    const struct core_settings *settings = core_get_settings(core);
    const char *pair = api_request_query(request, "tasks");
    int64_t now_us = driver_now_us(http->parts.driver);
    uint64_t first = 0, other = 0;
    char why[512] = "";
    if (pair && parse_pair(pair, &first, &other) < 0) {
        api_reply_error(request, 400, "tasks=%.60s: must be two ids such as 12,15", pair);
        return;
    }
    struct counts *counts = count_tasks(core);
    json_t *users = json_array();
    for (int i = 0; counts && i < core_user_count(core); i++) {
        struct user_standing user = core_user_standing(core, i, now_us);
        json_array_append_new(users, user_json(http, &user, &counts[i]));
    }
    free(counts);
    json_t *answer = json_pack("{s:s, s:f, s:f, s:o, s:o}", "order",
        queue_order_name(settings->order), "half_life_s",
        (double)settings->usage_half_life_us / 1e6, "window_s",
        (double)settings->usage_window_us / 1e6, "projects", projects_json(core, now_us), "users",
        users);
    if (pair)
        json_object_set_new(
            answer, "why", json_string(core_explain_order(core, first, other, why, sizeof why)));
    api_reply(request, 200, counts ? answer : NULL);
    if (!counts)
        json_decref(answer);
}
