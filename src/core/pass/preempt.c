/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preemption: a running task gives way to one of a higher priority, or to one of the same priority
 * that its policy ranks before it.
 *
 * The rank of a task (struct policy, `rank`) is a time: its remaining time, where that is known, or
 * its GPU time so far. With preemption the head of the main queue is, within the highest priority,
 * the task of the smallest rank (or one whose latest start has come: fifo_schedule.c). If it has to
 * wait, running tasks are stopped for it (stop_choice.c): suspended, or paused where NVIDIA's
 * driver cannot suspend them. Those of the lowest priority are stopped first; of one priority those
 * of the largest rank; of one rank those that are suspended and resumed most quickly.
 *
 * A task of a lower priority than the head's is stopped as soon as it has begun to use its GPUs;
 * when it was stopped before, not until it has computed 20 times as long as a stop costs since it
 * was resumed. So it may be stopped often, but loses at most 5 % of its time after the first stop.
 * A task of a higher priority is not stopped. One of the same priority is stopped only if
 *
 *   1. its rank is over four times that of the head, also less twice what stopping it costs;
 *   2. it has computed so long that all its stops together cost at most 5 % of that.
 *
 * With `look_ahead` the head is not the task of the smallest rank: the policy simulates several
 * orders of the queue and chooses one, each time when other tasks wait or run (policy/lookahead.c).
 * Which tasks give way to the head is still decided by the ranks.
 *
 * A suspended task is resumed when it is its turn by priority and rank, or where it delays no task
 * before it; a paused one when the task that it gave way to has left its GPU, or has not come there
 * within a minute. Under a policy that ranks no tasks, the main queue waits for suspended tasks
 * that come before its head.
 *
 * Example, rank by rest: task 1 has 5 h left on the only GPU and holds 20 GiB, task 2 needs 10 min.
 * To suspend and resume task 1 costs 18 s: task 2 starts at once and ends 5 h earlier, task 1 ends
 * 10 min later. Had task 1 a higher priority, task 2 would wait; had task 2, it would start even if
 * it took 10 h.
 */
#include "core/pass/preempt.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/top_k.h"
#include "core/ask/copy_room.h"
#include "core/ask/giving_way.h"
#include "core/ask/main_queue.h"
#include "core/ask/queue_head.h"
#include "core/ask/servable.h"
#include "core/ask/waits.h"
#include "core/decide/give_way.h"
#include "core/pass/main_queue_pass.h"
#include "core/pass/stop_choice.h"
#include "core/questions.h"
#include "core/state/claims.h"
#include "core/state/service.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* ---- which task is stopped ---- */

static int64_t stop_cost_us(const struct core *core, const struct task *task)
{
    return core_can_suspend(core, task) ? core_yield_cost_us(core, task) : 0;
}

#define RUN_MIN_US (60 * SECOND_US) /* chosen: no task is stopped as soon as it has come */

/* Has it memory on all its GPUs, as far as samples show, or been there so long that it may have? A
 * process that has not begun to use CUDA cannot be suspended. */
static bool has_begun(const struct core *core, const struct task *task, int64_t now_us)
{
    bool has_appeared = true;
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        has_appeared &= residence_has_appeared(gpu_view_resident(gpu, task->id)->residence);
    }
    return has_appeared || now_us - task_runs_since_us(task) >= RUN_MIN_US;
}

static bool may_stop_for_priority(const struct core *core, const struct task *task, int64_t now_us)
{
    return has_begun(core, task, now_us) && core_rested_us(core, task) <= now_us;
}

#define RANK_FACTOR 4 /* chosen on resampled traces (seeds 1001 to 1010): 2 gains no more */

/* Rules 1 and 2. */
static bool may_stop_for_rank(
    const struct core *core, const struct task *task, const struct task *head, int64_t now_us)
{
    int64_t cost_us = stop_cost_us(core, task), rank = core_rank(core, task, now_us);
    int n_stops = task->run->yield.suspensions + task->run->yield.pauses + 1;
    return rank - 2 * cost_us > RANK_FACTOR * core_rank(core, head, now_us) &&
           task_computed_us(task, now_us) >= CORE_RUN_PER_COST * cost_us * n_stops &&
           now_us - task_runs_since_us(task) >= CORE_RUN_PER_COST * cost_us + RUN_MIN_US;
}

static bool may_be_stopped(
    const struct core *core, const struct task *task, const struct task *head, int64_t now_us)
{
    int priority = task->request.priority, for_priority = head->request.priority;
    bool can_stop = core_can_suspend(core, task) ? core_has_copy_room(core, task)
                                                 : core_may_pause(core, task, now_us);
    if (task->state != TASK_RUNNING || task->ending || task->run->memory_wait.bytes || !can_stop ||
        task->run->yield.retry_us > now_us || priority > for_priority)
        return false;
    return priority < for_priority ? may_stop_for_priority(core, task, now_us)
                                   : may_stop_for_rank(core, task, head, now_us);
}

static bool is_stopped_rather(
    const struct core *core, const struct task *a, const struct task *b, int64_t now_us)
{
    if (core_is_ranked_before(core, b, a, now_us))
        return true;
    return !core_is_ranked_before(core, a, b, now_us) &&
           stop_cost_us(core, a) < stop_cost_us(core, b);
}

/* ---- which task is resumed ---- */

#define START_WITHIN_US (60 * SECOND_US) /* chosen: other tasks may have to be suspended first */

/* Does the other task use a GPU of the paused one, or will it soon? It may never, if another task
 * has become the head of the queue or recovers: then each would wait for the other. */
static bool is_before_it(const struct task *paused, const struct task *other, int64_t now_us)
{
    if (!other || task_shares_gpu(paused, other))
        return other != NULL;
    return other->state == TASK_QUEUED && now_us - paused->run->yield.since_us < START_WITHIN_US;
}

static int continue_paused(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->n_tasks && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (task->state != TASK_PAUSED || task->run->yield.reason != YIELD_TO_TASK)
            continue;
        const struct task *before = core_find_task(core, task->run->yield.to_task);
        if (!is_before_it(task, before, now_us))
            r = core_continue_task(core, task, now_us);
    }
    return r;
}

/* Of the core at a time: what an order of tasks depends on. */
struct instant {
    const struct core *core;
    int64_t now_us;
};

static bool is_first(const void *a, const void *b, const void *context)
{
    const struct instant *at = context;
    return core_is_ranked_before(
        at->core, *(struct task *const *)a, *(struct task *const *)b, at->now_us);
}

#define RESUMES_MAX 64 /* chosen, to keep a pass short */

/* Resumes suspended tasks by priority and rank: those before the head, or those behind it. Sets
 * `ret_waits` when one waits on that the GPUs could serve. */
static int resume_in_order(
    struct core *core, const struct task *head, bool are_before, int64_t now_us, bool *ret_waits)
{
    const struct instant at = {core, now_us};
    struct task *tasks[RESUMES_MAX];
    size_t n = 0;
    int r = 0;
    *ret_waits = false;
    for (struct task *task = core->suspended_queue.first; task; task = task->next)
        if (core_is_resumed_before(core, task, head, now_us) == are_before)
            n = top_k_insert(tasks, n, RESUMES_MAX, sizeof task, &task, is_first, &at);
    for (size_t i = 0; i < n && r == 0; i++) {
        r = core_try_resume(core, tasks[i], are_before, now_us, &core->placement);
        *ret_waits |= tasks[i]->state == TASK_SUSPENDED &&
                      tasks[i]->run->yield.retry_us <= now_us &&
                      core_waits_for_room(core, tasks[i], &core->placement) &&
                      !core_waits_for_service(tasks[i]) && !core_keep_for_return(core, tasks[i]);
    }
    return r;
}

/* ---- the plan of the queue ---- */

/* What a plan depends on, apart from the tasks that wait: the residents of each GPU, whether they
 * compute, and whether the GPU takes tasks. */
static uint64_t hash_gpus(const struct core *core)
{
    uint64_t hash = HASH_START;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        const int state[] = {gpu->n_residents, (int)gpu->health, gpu->mem_used_bytes.valid};
        hash = hash_bytes(hash, state, sizeof state);
        for (int k = 0; k < gpu->n_residents; k++) {
            uint64_t resident = 2 * gpu->residents[k].task + gpu->residents[k].is_stopped;
            hash = hash_bytes(hash, &resident, sizeof resident);
        }
    }
    return hash;
}

static uint64_t hash_waiting(const struct core *core)
{
    uint64_t hash = hash_bytes(HASH_START, &core->n_queued, sizeof core->n_queued);
    for (const struct task *task = core_first_task(core); task; task = task->next) {
        const int64_t of_task[] = {(int64_t)task->id, task->request.priority,
            task->request.need.kind, task->request.need.bytes};
        hash = hash_bytes(hash, of_task, sizeof of_task);
    }
    return hash;
}

#define PLAN_AGAIN_US (30 * SECOND_US) /* chosen */

/* A burst of submissions makes one plan a second. Where none could be made, it is tried again. */
static bool is_plan_stale(const struct core *core, const struct planned *now, int64_t now_us)
{
    const struct planned *before = &core->planned;
    int64_t age_us = now_us - before->at_us;
    return before->gpus != now->gpus || (before->waiting != now->waiting && age_us >= SECOND_US) ||
           (core->plan.order == PLAN_NONE && age_us >= PLAN_AGAIN_US);
}

#define PLANNED_MAX 64 /* GPUs and waiting tasks: more are not planned */

/* Chooses the order of the queue again if other tasks wait or run than the last time. */
static int plan_queue(struct core *core, int64_t now_us)
{
    const struct policy *policy = core->settings.policy;
    bool is_planned = core->settings.look_ahead && policy->plan && core->n_queued > 1 &&
                      core->n_queued <= PLANNED_MAX && core->view.n_gpus <= PLANNED_MAX;
    if (!is_planned) {
        core->planned = (struct planned){0};
        core->plan = (struct queue_plan){PLAN_NONE, 0};
        return 0;
    }
    const struct planned now = {hash_gpus(core), hash_waiting(core), now_us};
    if (!is_plan_stale(core, &now, now_us))
        return 0;
    core->planned = now;
    return policy->plan(core, now_us, &core->plan);
}

static const struct stop_rule by_rank = {
    may_be_stopped, is_stopped_rather, YIELD_TO_TASK, .takes_place = false};

int core_schedule_preempting(struct core *core, int64_t now_us)
{
    bool any_waits;
    int r = plan_queue(core, now_us);
    if (r == 0)
        r = continue_paused(core, now_us);
    struct task *head = core_head_of_queue(core);
    if (r == 0)
        r = resume_in_order(core, head, true, now_us, &any_waits);
    if (r < 0 || (any_waits && head && !core_task_policy(core, head)->rank))
        return r;
    r = core_schedule_main(core, now_us);
    head = core_head_of_queue(core);
    if (r == 0 && head)
        r = core_stop_tasks_for(core, head, &by_rank, now_us);
    bool is_known = !head || !core_awaits_sample(core, head); /* whether the head can start */
    return r == 0 && is_known ? resume_in_order(core, head, false, now_us, &any_waits) : r;
}
