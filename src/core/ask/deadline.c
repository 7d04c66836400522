/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When does the core need a TICK at the latest? Whatever a pass or a reaction does because time has
 * passed has its moment here: a time limit, the end of a time slot, a begin, a reservation in
 * advance, a resumption that is tried again, the hold of a promise, the end of a probe, a decision
 * that is delayed. Forgetting one means that it happens only with the next event.
 */
#include "core/ask/deadline.h"

#include "base/array.h"
#include "base/clock.h"
#include "core/ask/giving_way.h"
#include "core/ask/placement.h"
#include "core/ask/probe.h"
#include "core/ask/queue_head.h"
#include "core/ask/queue_pause.h"
#include "core/ask/waits.h"
#include "core/questions.h"
#include "core/state/fifo_marks.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

int64_t core_expires_us(const struct core *core, uint64_t id)
{
    const struct task *task = core_find_task(core, id);
    bool limited = !core->settings.expires_elsewhere && task && task->state == TASK_RUNNING &&
                   task->request.time_limit_us > 0;
    return limited ? task->started_us + task->run->yield.attempt_stopped_us +
                         task->request.time_limit_us
                   : TIME_NEVER;
}

/* When a task of a lower priority than the head may give way again. */
static int64_t next_rested_us(const struct core *core)
{
    const struct task *head = core->settings.preempt ? core_head_of_queue(core) : NULL;
    int64_t earliest_us = TIME_NEVER;
    for (int i = 0; i < core->view.n_gpus && head; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++) {
            const struct task *task = core_find_task(core, gpu->residents[k].task);
            bool is_lower = task->request.priority < head->request.priority;
            int64_t us = is_lower ? core_rested_us(core, task) : TIME_NEVER;
            if (us > core->last_pass_us && us < earliest_us)
                earliest_us = us;
        }
    }
    return earliest_us;
}

/* Whether a task gives way depends on how long it has run, or the head has waited. */
static int64_t next_preemption_us(const struct core *core)
{
    bool may_give_way = core->settings.preempt || core->settings.make_room;
    if (!may_give_way || core_queued_count(core) == 0)
        return TIME_NEVER;
    int64_t rested_us = next_rested_us(core);
    int64_t period_us = core->last_pass_us + CORE_BACKFILL_PERIOD_US;
    return rested_us < period_us ? rested_us : period_us;
}

static void note_moment(const struct core *core, int64_t us, int64_t *earliest_us)
{
    if (us > core->last_pass_us && us < *earliest_us)
        *earliest_us = us;
}

/* When the next resumption that failed is tried again, the driver is asked once more for a context
 * or a copy that it refused, or a task may be resumed beside an external process that lasts;
 * TIME_NEVER: there is none. */
static int64_t core_retry_us(const struct core *core)
{
    int64_t earliest = TIME_NEVER;
    for (const struct task *task = core->suspended_queue.first; task; task = task->next) {
        note_moment(core, task->run->yield.retry_us, &earliest);
        note_moment(core, task->run->yield.relocate_retry_us, &earliest);
        note_moment(core, task->run->yield.since_us + CORE_EXTERNAL_LASTS_US, &earliest);
    }
    return earliest;
}

int64_t core_advance_deadline_us(const struct core *core, int64_t now_us)
{
    int64_t earliest = TIME_NEVER;
    for (size_t i = 0; i < core->n_advances; i++) {
        const int64_t moments[] = {core->advances[i].from_us, core->advances[i].until_us};
        for (size_t k = 0; k < ARRAY_SIZE(moments); k++)
            if (moments[k] > now_us && moments[k] < earliest)
                earliest = moments[k];
    }
    return earliest;
}

int64_t core_recall_us(const struct core *core, const struct task *task)
{
    const struct task_yield *yield = &task->run->yield;
    bool is_away = yield->has_ranks && task_context_gpu(task) >= 0;
    bool is_paused = task->state == TASK_PAUSED && core_may_be_ranks(task);
    return (is_away || is_paused) && !task->ending ? yield->since_us + core->settings.ranks_away_us
                                                   : TIME_NEVER;
}

/* A task that is stopped or away goes on for its ranks, or when the probe has ended for which it is
 * paused. */
static void note_return(const struct core *core, uint64_t id, int64_t *earliest_us)
{
    const struct task *task = core_find_task(core, id);
    note_moment(core, core_recall_us(core, task), earliest_us);
    note_moment(core, core_probe_end_us(task), earliest_us);
}

/* When the next of these tasks has to go on; TIME_NEVER: none has. */
static int64_t next_return_us(const struct core *core)
{
    int64_t earliest_us = TIME_NEVER;
    bool any = core->any_stopped || core->any_context;
    for (int i = 0; i < core->view.n_gpus && any; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_absent; k++)
            note_return(core, gpu->absent[k].task, &earliest_us);
        for (int k = 0; k < gpu->n_residents; k++)
            if (gpu->residents[k].is_stopped)
                note_return(core, gpu->residents[k].task, &earliest_us);
    }
    return earliest_us;
}

static bool waits_beside(
    const struct core *core, const struct task *absent, const struct task *running)
{
    for (int i = 0; i < running->n_gpus; i++)
        if (gpu_view_has_context(&core->view.gpus[running->gpus[i]], absent->id))
            return true;
    return false;
}

/* Where ranks take part, all that wait get a turn before the first ranks have to be back. */
static int64_t slot_us_of(const struct core *core, const struct task *task)
{
    bool has_ranks = task->run->yield.has_ranks;
    int64_t n_waiting = core_queued_count(core) > 0;
    for (const struct task *other = core->suspended_queue.first; other; other = other->next) {
        n_waiting += core_waits_for_turn(other);
        has_ranks |= core_waits_for_turn(other) && other->run->yield.has_ranks &&
                     waits_beside(core, other, task);
    }
    int64_t bound_us = core->settings.ranks_away_us / (n_waiting > 1 ? n_waiting : 1);
    return has_ranks && bound_us < core->settings.slot_us ? bound_us : core->settings.slot_us;
}

int64_t core_slot_end_us(const struct core *core, const struct task *task)
{
    int64_t least_us = CORE_RUN_PER_COST * core_yield_cost_us(core, task);
    int64_t slot_us = slot_us_of(core, task);
    return task_runs_since_us(task) + (slot_us > least_us ? slot_us : least_us);
}

/* When the next slot is over, while a task waits; TIME_NEVER: none is. */
static int64_t core_slot_deadline_us(const struct core *core)
{
    int64_t earliest_us = TIME_NEVER;
    bool any_waits = core_queued_count(core) > 0 || core->suspended_queue.first;
    for (int i = 0; i < core->view.n_gpus && any_waits; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++) {
            const struct task *task = core_find_task(core, gpu->residents[k].task);
            int64_t end_us = task->request.takes_turns ? core_slot_end_us(core, task) : TIME_NEVER;
            if (end_us > core->last_pass_us && end_us < earliest_us)
                earliest_us = end_us;
        }
    }
    return earliest_us;
}

/* The end of the hold of a promise for which a task has given way, or another waits. */
static int64_t next_promise_us(const struct core *core)
{
    int64_t earliest_us = TIME_NEVER;
    for (int i = 0; i < core->view.n_gpus && core->view.has_promises; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++) {
            int64_t opens_us = gpu->residents[k].promise.opens_us;
            if (opens_us > core->last_pass_us && opens_us < earliest_us)
                earliest_us = opens_us;
        }
    }
    return earliest_us;
}

int64_t core_deadline_us(const struct core *core)
{
    int64_t earliest = core_retry_us(core), preemption_us = next_preemption_us(core);
    int64_t slot_us = core_slot_deadline_us(core);
    if (core->ended.n > 0 || core_is_fifo_marked(core) || core->is_pass_deferred)
        return 0;
    int64_t advance_us = core_advance_deadline_us(core, core->last_pass_us);
    int64_t promise_us = next_promise_us(core);
    int64_t return_us = next_return_us(core);
    earliest = advance_us < earliest ? advance_us : earliest;
    earliest = return_us < earliest ? return_us : earliest;
    earliest = promise_us < earliest ? promise_us : earliest;
    earliest = preemption_us < earliest ? preemption_us : earliest;
    int64_t decision_us = core_decision_deadline_us(core);
    earliest = decision_us < earliest ? decision_us : earliest;
    if (core->blocked_queue.first && core->next_begin_us < earliest)
        earliest = core->next_begin_us;
    earliest = slot_us < earliest ? slot_us : earliest;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++) {
            int64_t expires = core_expires_us(core, gpu->residents[k].task);
            earliest = expires < earliest ? expires : earliest;
        }
    }
    for (size_t i = 0; i < core->on_host.n; i++) {
        int64_t expires = core_expires_us(core, core->on_host.list[i]);
        earliest = expires < earliest ? expires : earliest;
    }
    return earliest;
}
