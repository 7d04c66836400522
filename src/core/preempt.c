/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preemption: a running task gives way to one that its policy ranks before it.
 *
 * The rank of a task (struct policy, `rank`) is a time: how long it still runs, where that is
 * known, or how much it has had. With preemption the head of the main queue is the task of the
 * smallest rank (or one whose latest start has come: fair_start.c). If it has to wait, running
 * tasks are stopped for it (stop_choice.c): suspended, or paused where the driver cannot suspend
 * them. A task is stopped only if
 *
 *   1. its rank is over four times that of the head, also less twice what stopping it costs;
 *   2. it has computed so long that all its stops together cost at most 5 % of that.
 *
 * A suspended task is resumed when its
 * turn by rank has come, or where it delays no task before it; a paused one, when the task that it
 * gave way to has left its GPU.
 *
 * Example, rank by rest: task 1 has 5 h left on the only GPU and holds 20 GiB, task 2 needs 10 min.
 * To suspend and resume task 1 costs 18 s: task 2 starts at once and ends 5 h earlier, task 1 ends
 * 10 min later.
 */
#include "base/clock.h"
#include "base/top_k.h"
#include "core/core_private.h"

#define RANK_FACTOR 4 /* chosen on resampled traces (seeds 1001 to 1010): 2 gains no more */
#define RUN_MIN_US  (60 * SECOND_US) /* chosen: no task is stopped as soon as it has come */
#define RESUMES_MAX 64               /* chosen, to keep a pass short */

int64_t core_rank(const struct core *core, const struct task *task, int64_t now_us)
{
    const struct policy *policy = core_task_policy(core, task);
    return policy->rank ? policy->rank(task, now_us) : 0;
}

/* ---- which task is stopped ---- */

/* Rules 1 and 2. */
static bool may_be_stopped(
    const struct core *core, const struct task *task, const struct task *head, int64_t now_us)
{
    bool can_suspend = core_can_suspend(core, task);
    int64_t cost_us = can_suspend ? core_yield_cost_us(core, task) : 0;
    int n_stops = task->yield.suspensions + task->yield.pauses + 1;
    int64_t rank = core_rank(core, task, now_us);
    return task->state == TASK_RUNNING && !task->ending && !task->memory_wait.bytes &&
           (can_suspend || core->settings.can_pause) && task->yield.retry_us <= now_us &&
           rank - 2 * cost_us > RANK_FACTOR * core_rank(core, head, now_us) &&
           task_computed_us(task, now_us) >= CORE_RUN_PER_COST * cost_us * n_stops &&
           now_us - task_runs_since_us(task) >= CORE_RUN_PER_COST * cost_us + RUN_MIN_US;
}

static const struct stop_rule by_rank = {may_be_stopped, core_rank, YIELD_TO_TASK};

/* ---- which task comes back ---- */

static bool shares_gpu(const struct task *a, const struct task *b)
{
    for (int i = 0; i < a->n_gpus; i++)
        for (int k = 0; k < b->n_gpus; k++)
            if (a->gpus[i] == b->gpus[k])
                return true;
    return false;
}

static int continue_paused(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->n_tasks && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (task->state != TASK_PAUSED || task->yield.reason != YIELD_TO_TASK)
            continue;
        const struct task *before = core_find_task(core, task->yield.to_task);
        bool goes_on = before && (before->queue || shares_gpu(task, before));
        if (!goes_on)
            r = core_continue_task(core, task, now_us);
    }
    return r;
}

struct ranked {
    struct task *task;
    int64_t rank;
};

static bool has_smaller_rank(const void *a, const void *b, const void *context)
{
    return ((const struct ranked *)a)->rank < ((const struct ranked *)b)->rank;
}

/* Resumes suspended tasks by rank: those before the head, or those behind it. */
static int resume_by_rank(
    struct core *core, const struct task *head, bool are_before, int64_t now_us)
{
    struct ranked tasks[RESUMES_MAX];
    size_t n = 0;
    int r = 0;
    int64_t limit = head ? core_rank(core, head, now_us) : INT64_MAX;
    for (struct task *task = core->suspended_queue.first; task; task = task->next) {
        struct ranked each = {task, core_rank(core, task, now_us)};
        if ((each.rank <= limit) == are_before)
            n = top_k_insert(tasks, n, RESUMES_MAX, sizeof *tasks, &each, has_smaller_rank, NULL);
    }
    for (size_t i = 0; i < n && r == 0; i++)
        r = core_try_resume(core, tasks[i].task, are_before, now_us);
    return r;
}

int core_schedule_preempting(struct core *core, int64_t now_us)
{
    int r = continue_paused(core, now_us);
    if (r == 0)
        r = resume_by_rank(core, core_head_of_queue(core), true, now_us);
    if (r == 0)
        r = core_schedule_main(core, now_us);
    struct task *head = core_head_of_queue(core);
    if (r == 0 && head)
        r = core_stop_tasks_for(core, head, &by_rank, now_us);
    return r < 0 ? r : resume_by_rank(core, head, false, now_us);
}
