/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preemption: a running task gives way to one that its policy ranks before it.
 *
 * The rank of a task (struct policy, `rank`) is a time: how long it still runs, where that is
 * known, or how much it has had. With preemption the head of the main queue is the task of the
 * smallest rank (or one whose latest start has come: fair_start.c). If it has to wait, running
 * tasks are stopped for it, one on each GPU that it lacks: suspended, or paused where the driver
 * cannot suspend them. A task is stopped only if
 *
 *   1. its rank is over four times that of the head, also less twice what stopping it costs;
 *   2. it has computed so long that all its stops together cost at most 5 % of that;
 *   3. the head then has the memory that it needs, and the tasks that stay on the GPU leave it SMs.
 *
 * No other task is stopped for a head for which one has been. A suspended task is resumed when its
 * turn by rank has come, or where it delays no task before it; a paused one, when the task that it
 * gave way to has left its GPU.
 *
 * Example, rank by rest: task 1 has 5 h left on the only GPU and holds 20 GiB, task 2 needs 10 min.
 * To suspend and resume task 1 costs 18 s: task 2 starts at once and ends 5 h earlier, task 1 ends
 * 10 min later.
 */
#include <math.h>

#include "base/clock.h"
#include "base/top_k.h"
#include "core/core_private.h"

#define RANK_FACTOR    4  /* chosen on resampled traces (seeds 1001 to 1010): 2 gains no more */
#define RUN_PER_COST   20 /* chosen: stops cost at most 1/20 of the time that a task computes */
#define RUN_MIN_US     (60 * SECOND_US) /* chosen: no task is stopped as soon as it has come */
#define RESUMES_MAX    64               /* chosen, to keep a pass short */
#define GPUS_OF_HEAD   64               /* chosen: for a head of more GPUs no task is stopped */
#define SMACT_TOGETHER 1.0 /* chosen: tasks of more SM activity together slow each other down */

int64_t core_rank(const struct core *core, const struct task *task, int64_t now_us)
{
    const struct policy *policy = core_task_policy(core, task);
    return policy->rank ? policy->rank(task, now_us) : 0;
}

/* ---- which task is stopped ---- */

static double needed_bytes(const struct core *core, const struct task *task)
{
    const struct conditions *conditions = &core->settings.conditions;
    bool is_known = task->request.need.kind >= NEED_ESTIMATED;
    return is_known ? (double)task->request.need.bytes + (double)conditions->margin_bytes
                    : (double)conditions->min_free_bytes;
}

/* Rule 3. What a resident will take but has not taken yet is not free. */
static bool would_fit(const struct core *core, const struct gpu_view *gpu, const struct task *out,
    const struct task *in)
{
    double left = reading_assume(gpu_view_free_bytes(gpu), 0);
    double smact = reading_assume(in->request.expect.smact, 1);
    int n_staying = 0;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        double used = reading_assume(resident->mem_used_bytes, 0);
        if (resident->task == out->id) {
            left += core_can_suspend(core, out) ? used : 0;
            continue;
        }
        left -= fmax(0, reading_assume(resident->need_bytes, used) - used);
        smact += resident->is_stopped ? 0 : reading_assume(resident->expect.smact, 1);
        n_staying++;
    }
    return left >= needed_bytes(core, in) && (n_staying == 0 || smact <= SMACT_TOGETHER);
}

static int64_t run_since_us(const struct task *task)
{
    return task->yield.resumed_us ? task->yield.resumed_us : task->started_us;
}

/* Rules 1 and 2. */
static bool may_be_stopped(
    const struct core *core, const struct task *task, const struct task *head, int64_t now_us)
{
    bool can_suspend = core_can_suspend(core, task);
    int64_t cost_us = can_suspend ? core_yield_cost_us(core, task) : 0;
    int n_stops = task->yield.suspensions + task->yield.pauses + 1;
    int64_t rank = core_rank(core, task, now_us);
    return task->state == TASK_RUNNING && !task->ending && !task->memory_wait.bytes &&
           (can_suspend || core->settings.can_pause) &&
           rank - 2 * cost_us > RANK_FACTOR * core_rank(core, head, now_us) &&
           task_computed_us(task, now_us) >= RUN_PER_COST * cost_us * n_stops &&
           now_us - run_since_us(task) >= RUN_PER_COST * cost_us + RUN_MIN_US;
}

struct stop {
    int gpu;
    const struct task *task; /* NULL: the GPU admits the head already */
    int64_t rank;
};

/* The resident that gives way to the head there: of those that may, that of the largest rank. */
static struct stop find_stop(
    const struct core *core, int i, const struct task *head, int64_t now_us)
{
    const struct gpu_view *gpu = &core->view.gpus[i];
    struct stop best = {.gpu = i, .rank = -1};
    for (int k = 0; k < gpu->n_residents; k++) {
        const struct task *task = core_find_task(core, gpu->residents[k].task);
        int64_t rank = core_rank(core, task, now_us);
        if (rank > best.rank && may_be_stopped(core, task, head, now_us) &&
            would_fit(core, gpu, task, head)) {
            best.task = task;
            best.rank = rank;
        }
    }
    return best;
}

static bool is_better_stop(const void *a, const void *b, const void *context)
{
    const struct stop *one = a, *other = b;
    if (!one->task != !other->task)
        return !one->task;
    return one->rank > other->rank;
}

static bool may_get_room(const struct core *core, int i, const struct task *head)
{
    const struct gpu_view *gpu = &core->view.gpus[i];
    bool is_busy = false;
    for (int k = 0; k < gpu->n_residents; k++)
        is_busy |= task_state_is_changing(core_find_task(core, gpu->residents[k].task)->state);
    return gpu->health == VIEW_OK && !is_busy && !gpu->drained_for && !gpu->closed_for &&
           cluster_view_suits(&core->view, i, head);
}

static bool has_been_stopped_for(const struct core *core, const struct task *head)
{
    for (int i = 0; i < core->n_tasks; i++) {
        const struct task *task = core->tasks[i];
        bool is_stopped = task->state == TASK_PAUSED || task->state == TASK_SUSPENDED ||
                          task->state == TASK_SUSPENDING;
        if (is_stopped && task->yield.reason == YIELD_TO_TASK && task->yield.to_task == head->id)
            return true;
    }
    return false;
}

static int make_room(struct core *core, const struct task *head, int64_t now_us)
{
    struct stop stops[GPUS_OF_HEAD];
    size_t n = 0, wanted = (size_t)head->request.gpus;
    if (wanted > GPUS_OF_HEAD || head->request.need.kind == NEED_PENDING ||
        has_been_stopped_for(core, head) || core_try_gpus(core, head, now_us) == PLACE_NOW)
        return 0;
    for (int i = 0; i < core->view.n_gpus; i++) {
        if (!may_get_room(core, i, head))
            continue;
        struct stop stop = {.gpu = i};
        if (core->verdicts[i].kind != VERDICT_FITS)
            stop = find_stop(core, i, head, now_us);
        if (stop.task || core->verdicts[i].kind == VERDICT_FITS)
            n = top_k_insert(stops, n, wanted, sizeof *stops, &stop, is_better_stop, NULL);
    }
    int r = 0;
    for (size_t i = 0; i < n && n == wanted && r == 0; i++)
        if (stops[i].task && stops[i].task->state == TASK_RUNNING)
            r = core_stop_task(core, stops[i].task, YIELD_TO_TASK, head->id, now_us);
    return r;
}

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
        r = make_room(core, head, now_us);
    return r < 0 ? r : resume_by_rank(core, head, false, now_us);
}
