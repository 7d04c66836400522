/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of the scheduler. core_step does to an event, in this order:
 *
 *   1. Apply (state/apply.c): the state changes as the event says. An event that does not suit the
 *      state is refused: nothing changes, and nothing below happens.
 *   2. React (decide/reactions.c): the immediate consequences of an input. An exit becomes END,
 *      RECOVER or REQUEUE; a cancel of a waiting task becomes END, of a running one EFFECT_KILL; a
 *      tick expires tasks; a lost MIG instance evicts its tasks.
 *   3. After a replay, once: the reactions that the end of the log cut off.
 *   4. Judge dependencies on tasks that have ended (decide/dependency_judge.c), let tasks that may
 *      start now into their queue (decide/eligibility.c), record what users have used
 *      (decide/record_usage.c) and how much their tasks were delayed (decide/record_delays.c), if a
 *      period is over, and follow the schedule of first come, first served
 *      (decide/fifo_schedule.c).
 *   5. Schedule (pass/schedule.c), if anything has changed that may let a task be placed. Cancels
 *      come one per step, and there may be 10,000: a cancel leaves the pass to the next step of
 *      another kind, and the core wants a TICK at once. So does the sample of a GPU whose poll has
 *      more of them: otherwise the first GPU would get all tasks that wait, before the others are
 *      known to be idle.
 *
 * Every decision of 2 to 5 is itself an event. It goes through the same apply function and is left
 * as EFFECT_APPEND before the effects that depend on it (decide/effects.c): the driver writes it to
 * the log, and only then starts or kills a process. So a log that is replayed through core_apply
 * gives the same state, whether the daemon was stopped before or after the effect was carried out.
 *
 * Idempotent: STARTED (it may be reported again after a restart), all effects but EFFECT_START, a
 * hold or cancel that is repeated (answered CORE_NOT_NOW). Fatal: a move of a task that its
 * life-cycle does not allow (task.c aborts the program). No memory (-ENOMEM): the step is
 * incomplete, and the driver has to end and replay its log.
 */
#include "core/core.h"

#include "core/ask/deadline.h"
#include "core/ask/giving_way.h"
#include "core/ask/probe.h"
#include "core/decide/dependency_judge.h"
#include "core/decide/eligibility.h"
#include "core/decide/fifo_schedule.h"
#include "core/decide/reactions.h"
#include "core/decide/record_delays.h"
#include "core/decide/record_usage.h"
#include "core/pass/schedule.h"
#include "core/state/apply.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

int core_apply(struct core *core, const struct event *event)
{
    if (event->kind != EVENT_SAMPLE && event->kind != EVENT_SPEED) /* they say it themselves */
        core->replayed = core->pass_needed = core->is_gate_open = true;
    return core_apply_event(core, event);
}

/* A report may be the last that a probe lacks to begin, or what it was made for. */
static bool is_for_probe(const struct core *core, const struct event *event)
{
    const struct task *task = event->kind == EVENT_SPEED ? core_find_task(core, event->task) : NULL;
    return task && (event->time_us < task->run->promise.probe_until_us ||
                       core_find_probe(core, task, event->time_us).kind == PROBE_DUE);
}

/* Most samples and measured speeds cannot let a task be placed: apply_sample.c and promise.c say
 * which can. Drains and backfill depend on more. */
static bool needs_pass(const struct core *core, const struct event *event)
{
    if ((event->kind != EVENT_SAMPLE && event->kind != EVENT_SPEED) || core->pass_needed ||
        core->recovery_queue.first || core->n_memory_waits || core->any_wanted ||
        core_advance_deadline_us(core, core->last_pass_us) <= event->time_us ||
        is_for_probe(core, event))
        return true;
    bool is_awaited = core->reserved_for || core->head_lacks_power;
    return is_awaited && event->time_us - core->last_pass_us >= CORE_BACKFILL_PERIOD_US;
}

static int make_pass(struct core *core, int64_t now_us)
{
    core->pass_needed = core->is_pass_deferred = false;
    core->last_pass_us = now_us;
    return core_schedule(core, now_us);
}

/* Of many cancels only the last one is followed by a pass, in the next step. fifo_schedule.c says
 * why FIFO's schedule waits, too. */
static int follow_up(struct core *core, const struct event *event)
{
    bool is_part = event->kind == EVENT_SAMPLE && event->sample.more_follow;
    if (event->kind == EVENT_CANCEL || (is_part && needs_pass(core, event))) {
        core->pass_needed = core->is_pass_deferred = true;
        return 0;
    }
    int r = core_update_fifo(core, event->time_us);
    return r == 0 && needs_pass(core, event) ? make_pass(core, event->time_us) : r;
}

int core_step(struct core *core, const struct event *event)
{
    bool was_replayed = core->replayed;
    core->n_effects = 0;
    if (!core_is_command_possible(core, event))
        return core_find_task(core, event->task) ? CORE_NOT_NOW : CORE_NO_SUCH_TASK;
    int r = core_apply_event(core, event);
    if (r == 0)
        r = core_react_to_input(core, event);
    if (r == 0 && was_replayed)
        r = core_decide_leftovers(core, event->time_us);
    if (r == 0)
        r = core_judge_dependencies(core, event->time_us);
    if (r == 0)
        r = core_admit_eligible(core, event->time_us);
    if (r == 0 && event->kind == EVENT_EXITED)
        r = core_record_usage_of(core, core_find_task(core, event->task)->uid, event->time_us);
    if (r == 0 && event->kind == EVENT_SPEED)
        r = core_record_delays(core, core_find_task(core, event->task), event->time_us);
    if (r == 0)
        r = core_record_usage(core, event->time_us);
    if (r == 0)
        r = follow_up(core, event);
    return r;
}
