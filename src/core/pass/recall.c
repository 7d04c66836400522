/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of NCCL cannot stay away for as long as they like: PyTorch ends a rank whose watchdog stood
 * still, and a collective that began long ago. So after the setting `ranks_away_us`, for whatever
 * reason it was suspended, such a task comes before all queues. What stays suspended until a user
 * or a call of CUDA wakes it is woken then. What was paused goes on beside those for which it was
 * paused, for a minute at least (core_may_pause). A suspended task comes back only to its own GPUs:
 *
 *     they have room          it is resumed
 *     tasks there can stop    these are suspended for it; no task starts there meanwhile
 *     they cannot             no task starts there, and it waits until one of them ends
 *
 * Example: ranks a and task b take turns of 10 minutes on the same two GPUs. a is suspended at
 * t=600, and b starts. At t=840 b is suspended, and a comes back. Where b is a task of ranks too,
 * the next turn ends 240 s later; the slots of such tasks are made so short (core_slot_end_us) that
 * a third one gets its turn.
 */
#include "core/pass/recall.h"

#include "core/ask/copy_room.h"
#include "core/ask/deadline.h"
#include "core/ask/giving_way.h"
#include "core/ask/placement.h"
#include "core/decide/effects.h"
#include "core/decide/give_way.h"
#include "core/pass/stop_choice.h"
#include "core/state/claims.h"
#include "core/state/tasks.h"

/* Whatever its priority: a task that is stopped loses time, and one that is not back its run. */
static bool may_be_stopped(
    const struct core *core, const struct task *task, const struct task *head, int64_t now_us)
{
    return task->state == TASK_RUNNING && !task->ending && !task->run->memory_wait.bytes &&
           core_may_suspend(core, task, now_us);
}

static bool is_stopped_rather(
    const struct core *core, const struct task *a, const struct task *b, int64_t now_us)
{
    if (a->request.priority != b->request.priority)
        return a->request.priority < b->request.priority;
    return core_yield_cost_us(core, a) < core_yield_cost_us(core, b);
}

static const struct stop_rule by_turn = {
    may_be_stopped, is_stopped_rather, YIELD_TO_SLOT, .takes_place = true};
static const struct stop_rule by_need = {
    may_be_stopped, is_stopped_rather, YIELD_TO_TASK, .takes_place = true};

/* Those that take turns wait for their next one. */
static bool all_take_turns(const struct core *core, const struct task *task)
{
    const struct task_yield *yield = &task->run->yield;
    for (int i = 0; i < yield->n_context_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[yield->context_gpus[i]];
        for (int k = 0; k < gpu->n_residents; k++)
            if (!core_find_task(core, gpu->residents[k].task)->request.takes_turns)
                return false;
    }
    return true;
}

static int recall_task(struct core *core, struct task *task, int64_t now_us)
{
    int r = core_try_resume(core, task, true, now_us, &core->placement);
    if (r < 0 || task->state != TASK_SUSPENDED || !core_keep_for_recall(core, task))
        return r;
    struct task waiting = core_as_waiting(core, task);
    const struct stop_rule *rule = all_take_turns(core, task) ? &by_turn : &by_need;
    return core_stop_tasks_for(core, &waiting, rule, now_us);
}

/* From now on it waits to be resumed, like the others. */
static int wake_if_due(struct core *core, uint64_t id, int64_t now_us)
{
    const struct task *task = core_find_task(core, id);
    const struct event event = {.kind = EVENT_RESUME, .time_us = now_us, .task = id};
    bool is_due = task_stays_suspended(task) && core_recall_us(core, task) <= now_us;
    return is_due ? core_decide(core, &event) : 0;
}

static int continue_if_due(struct core *core, uint64_t id, int64_t now_us)
{
    const struct task *task = core_find_task(core, id);
    const struct event event = {.kind = EVENT_RESUME, .time_us = now_us, .task = id};
    if (task->state != TASK_PAUSED || core_recall_us(core, task) > now_us)
        return 0;
    int r = task->run->yield.by_user ? core_decide(core, &event) : 0;
    return r < 0 ? r : core_continue_task(core, task, now_us);
}

/* The contexts of suspended ranks stay on their GPUs, and the memory of paused ones. */
static int wake_those_due(struct core *core, int64_t now_us)
{
    int r = 0;
    bool any = core->any_stopped || core->any_context;
    for (int i = 0; i < core->view.n_gpus && any && r == 0; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_absent && r == 0; k++)
            r = wake_if_due(core, gpu->absent[k].task, now_us);
        for (int k = 0; k < gpu->n_residents && r == 0; k++)
            if (gpu->residents[k].is_stopped)
                r = continue_if_due(core, gpu->residents[k].task, now_us);
    }
    return r;
}

int core_recall_ranks(struct core *core, int64_t now_us)
{
    struct task *next;
    int r = wake_those_due(core, now_us);
    for (struct task *task = core->suspended_queue.first; task && r == 0; task = next) {
        next = task->next;
        if (core_recall_us(core, task) <= now_us && task->run->yield.retry_us <= now_us)
            r = recall_task(core, task, now_us);
    }
    return r;
}
