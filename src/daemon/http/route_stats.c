/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums over all tasks that have ended: GET /v1/stats. A history of years has millions of them, so
 * they are added up in slices, one in each turn of the loop; users take turns.
 */
#include <stdlib.h>

#include "daemon/gpus/gpus_query.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/public_json.h"
#include "daemon/http/routes.h"

#define SLICE_TASKS 5000 /* chosen: about 3 ms */

struct stats {
    struct turn turn; /* the first member */
    struct http *http;
    struct api_request *request;
    struct store_totals totals;
};

static json_t *mean_seconds_json(int64_t sum_us, int64_t n)
{
    return n ? json_real((double)sum_us / 1e6 / (double)n) : json_null();
}

static json_t *stats_json(const struct http *http, const struct store_totals *totals)
{
    const struct gpu_totals gpus = gpus_totals(http->parts.gpus);
    int64_t ended = 0;
    for (int state = TASK_COMPLETED; state < TASK_STATES; state++)
        ended += totals->tasks[state];
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:f}", "tasks_completed",
        (json_int_t)totals->tasks[TASK_COMPLETED], "tasks_failed",
        (json_int_t)(ended - totals->tasks[TASK_COMPLETED]), "oom", (json_int_t)totals->oom_count,
        "recovered", (json_int_t)totals->recovered, "total_s",
        (double)(totals->last_ended_wall_us - totals->first_submitted_wall_us) / 1e6, "avg_wait_s",
        mean_seconds_json(totals->wait_us, ended), "avg_exec_s",
        mean_seconds_json(totals->exec_us, ended), "avg_jct_s",
        mean_seconds_json(totals->jct_us, ended), "mean_smact", json_reading(gpus.mean_smact, 1),
        "energy_mj", gpus.energy_j / 1e6);
}

/* Adds the next slice. Returns true when the request was answered and `stats` freed. */
static bool add_slice(struct stats *stats)
{
    struct fault fault = {0};
    int r = store_add_totals(stats->http->parts.store, SLICE_TASKS, &fault, &stats->totals);
    if (r > 0)
        return false;
    if (r < 0)
        api_reply_error(stats->request, 500, "%s", fault.text);
    else
        api_reply(stats->request, 200, stats_json(stats->http, &stats->totals));
    free(stats);
    return true;
}

static void on_turn(uv_idle_t *turn)
{
    struct http *http = turn->data;
    struct stats *stats = (struct stats *)turns_take(&http->stats);
    if (add_slice(stats))
        http_serve_soon(http);
    else
        turns_add(&http->stats, &stats->turn);
    if (!http->stats.first)
        uv_idle_stop(turn);
}

void route_stats(void *context, struct api_request *request)
{
    struct http *http = context;
    struct stats *stats = calloc(1, sizeof *stats);
    if (!stats) {
        api_reply(request, 500, NULL);
        return;
    }
    stats->http = http;
    stats->request = request;
    stats->turn.user = names_counted_uid(http->parts.names, api_request_peer(request).uid);
    if (add_slice(stats))
        return;
    turns_add(&http->stats, &stats->turn);
    uv_idle_start(&http->stats_turn, on_turn);
}

void stats_refuse(struct http *http)
{
    uv_idle_stop(&http->stats_turn);
    for (struct turn *turn; (turn = turns_take(&http->stats));) {
        struct stats *stats = (struct stats *)turn;
        api_reply_error(stats->request, 503, "collocd is going down");
        free(stats);
    }
}
