/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows from a user's command to suspend, resume or move a task, from the driver's answers,
 * and from a task that does not use its GPUs. A task that was cancelled while it was suspended,
 * resumed or moved is ended after the answer.
 */
#include "core/decide/yield_reactions.h"

#include "core/ask/copy_room.h"
#include "core/ask/giving_way.h"
#include "core/decide/effects.h"
#include "core/decide/give_way.h"
#include "core/state/state.h"

static int after_suspend(struct core *core, const struct task *task, int64_t now_us)
{
    return task->state == TASK_RUNNING ? core_stop_task(core, task, YIELD_TO_USER, 0, now_us) : 0;
}

static int after_resume(struct core *core, const struct task *task, int64_t now_us)
{
    bool is_paused = task->state == TASK_PAUSED && task->run->yield.reason == YIELD_TO_USER;
    return is_paused ? core_continue_task(core, task, now_us) : 0;
}

/* A task that is not suspended for it keeps its GPUs: a pause would free no memory. */
static int after_idle(struct core *core, const struct task *task, const struct event *idle)
{
    int64_t limit_us = core->settings.suspend_unused_us;
    bool is_long = limit_us > 0 && idle->idle_us >= limit_us;
    if (!is_long || task->ending || task->run->memory_wait.bytes ||
        !core_may_suspend(core, task, idle->time_us))
        return 0;
    return core_stop_task(core, task, YIELD_UNUSED, 0, idle->time_us);
}

/* A process that can never be resumed is ended, and its task run again. */
static int after_failure(struct core *core, const struct task *task, const struct event *failed)
{
    struct event evict = {.kind = EVENT_EVICT, .time_us = failed->time_us, .task = task->id};
    int r = 0;
    if (failed->suspension_failed.why == SUSPENSION_LOST && !task->ending)
        r = core_decide(core, &evict);
    return r == 0 && task->ending ? core_kill_task(core, task) : r;
}

int core_after_yield(struct core *core, const struct task *task, const struct event *event)
{
    switch (event->kind) {
    case EVENT_SUSPEND:
        return after_suspend(core, task, event->time_us);
    case EVENT_IDLE:
        return after_idle(core, task, event);
    case EVENT_RESUME:
        return after_resume(core, task, event->time_us);
    case EVENT_MOVE:
        return core_move_task(core, task, event->yield.gpus, core_bytes_of(core, task),
            YIELD_TO_USER, 0, event->time_us);
    case EVENT_SUSPENSION_FAILED:
        return after_failure(core, task, event);
    default: /* SUSPENDED, RESUMED, MOVED: of a task that was cancelled meanwhile? */
        return task->ending ? core_kill_task(core, task) : 0;
    }
}

int core_decide_yield_leftovers(struct core *core, const struct task *task, int64_t now_us)
{
    if (task->state == TASK_RUNNING && task->run->yield.by_user)
        return core_stop_task(core, task, YIELD_TO_USER, 0, now_us);
    if (task->state == TASK_PAUSED && !task->run->yield.by_user)
        return after_resume(core, task, now_us);
    return 0;
}
