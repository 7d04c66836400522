/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of the present job, off its GPUs or back: how its steps wait for its processes, and its
 * end. The longer a step has waited, the less often it is called again.
 */
#include "base/clamp.h"
#include "base/log.h"
#include "daemon/node/away_state.h"

enum { RETRY_MS = 2000, WAIT_MIN_MS = 2, WAIT_MAX_MS = 500, WAIT_PART = 8 }; /* chosen */

void away_begin(struct away_jobs *away, struct away_job *job, enum node_job_where where,
    void (*begin)(struct away_jobs *away))
{
    away->present = job;
    away->client = helper_pool_find(&away->helpers);
    job->began_ms = job->step_ms = uv_now(away->node->parts.loop);
    job->where = where;
    begin(away);
}

static void on_timer(uv_timer_t *timer)
{
    struct away_jobs *away = timer->data;
    void (*step)(struct away_jobs *) = away->next_step;
    away->next_step = NULL;
    if (away->is_closed)
        return;
    if (step)
        step(away);
    else if (!away->present)
        away->try_jobs(away);
}

void away_try_soon(struct away_jobs *away)
{
    if (!away->present && !away->is_closed)
        uv_timer_start(&away->timer, on_timer, 0, 0);
}

void away_wait(struct away_jobs *away, void (*step)(struct away_jobs *away))
{
    uint64_t waited_ms = uv_now(away->node->parts.loop) - away->present->step_ms;
    int64_t wait_ms = clamp_int64((int64_t)(waited_ms / WAIT_PART), WAIT_MIN_MS, WAIT_MAX_MS);
    away->next_step = step;
    uv_timer_start(&away->timer, on_timer, (uint64_t)wait_ms, 0);
}

void away_finish(struct away_jobs *away, enum node_job_where where)
{
    struct away_job *job = away->present;
    uint64_t now_ms = uv_now(away->node->parts.loop);
    bool is_done = where == NODE_JOB_OUT ? job->where == NODE_JOB_GOING : !job->said.failure;
    away->present = NULL;
    away->next_step = NULL;
    job->said.took_us = is_done ? (int64_t)(now_ms - job->began_ms) * MS_US : 0;
    if (is_done)
        log_info("job %u is %s, after %.2f s", job->job, where == NODE_JOB_OUT ? "out" : "back",
            (double)(now_ms - job->began_ms) / 1000);
    job->where = where;
    job->retry_ms = is_done && where == NODE_JOB_OUT ? 0 : now_ms + RETRY_MS; /* after a poll */
    if (where == NODE_JOB_HERE) {
        job->must_return = job->is_lost = false;
        if (job->has_record)
            away_remove_record(away, job);
    }
    away_try_soon(away);
}
