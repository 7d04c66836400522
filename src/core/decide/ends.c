/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows when the process of a task has exited. The first that applies:
 *
 *     RECOVER   it ran out of GPU memory beside others, or within a limit of colloc
 *     REQUEUE   it is not at fault for its end: another client of its MPS server, or a lost GPU;
 *               or a user has it run again, whatever its end was
 *     RESTART   it is a service: after a second, and after twice as long for each further early
 *               end, up to 4 min 16 s
 *     END       completed, failed, cancelled, timed out or out of memory
 *
 * The exit may say that colloc ended the task where the log could not (docs/architecture.md).
 */
#include "core/decide/ends.h"

#include "base/clock.h"
#include "core/decide/effects.h"
#include "core/state/fifo_marks.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

int core_end_task(struct core *core, uint64_t id, enum task_state state, int64_t now_us)
{
    struct event event = {.kind = EVENT_END, .time_us = now_us, .task = id, .end = state};
    int r = core_decide(core, &event);
    if (r == 0)
        core_note_early_end(core, core_find_task(core, id));
    return r;
}

/* If colloc ended the task, its state says why. Otherwise the exit decides: the shim ends a task at
 * its time limit while no daemon runs. */
static enum task_state final_state(const struct task *task)
{
    switch (task->ending ? task->ending : task->run->exit.failure) {
    case FAILURE_NONE:
        return TASK_COMPLETED;
    case FAILURE_CANCELLED:
    case FAILURE_DEPENDENCY:
        return TASK_CANCELLED;
    case FAILURE_TIME_LIMIT:
        return TASK_TIMEOUT;
    case FAILURE_STOPPED:
        return TASK_STOPPED;
    case FAILURE_GPU_OOM:
    case FAILURE_HOST_OOM:
        return TASK_OUT_OF_MEMORY;
    default:
        return TASK_FAILED;
    }
}

/* A task that had its GPUs to itself, without a memory limit of colloc, would crash again. */
static bool may_recover(const struct core *core, const struct task *task)
{
    bool may_differ = task->had_coresidents || task->run->share.mem_limit_bytes > 0;
    return !task->ending && !task->request.once && task->run->exit.failure == FAILURE_GPU_OOM &&
           may_differ && task->oom_count <= core->settings.recoveries_max;
}

static bool may_requeue(const struct core *core, const struct task *task)
{
    if (task->ending == FAILURE_REQUEUED)
        return true;
    return !task->ending && !task->request.once && task->not_at_fault &&
           task->requeue_count < core->settings.requeues_max;
}

/* The exit may say that colloc ended it, where the log could not (architecture.md). */
static bool may_restart(const struct task *task)
{
    enum failure_class failure = task->run->exit.failure;
    return task->request.service.is_service && !task->ending && !task->request.once &&
           failure != FAILURE_CANCELLED && failure != FAILURE_TIME_LIMIT;
}

enum { RESTART_DOUBLINGS_MAX = 8 }; /* chosen: 2^8 s is 4 min 16 s */

static int64_t restart_delay_us(const struct task *task)
{
    int quick = task->run->service.quick_ends;
    return SECOND_US << (quick < RESTART_DOUBLINGS_MAX ? quick : RESTART_DOUBLINGS_MAX);
}

int core_after_exit(struct core *core, const struct task *task, int64_t now_us)
{
    struct event event = {.time_us = now_us, .task = task->id};
    if (may_recover(core, task)) {
        event.kind = EVENT_RECOVER;
    } else if (may_requeue(core, task)) {
        event.kind = EVENT_REQUEUE;
    } else if (may_restart(task)) {
        event.kind = EVENT_RESTART;
        event.restart_us = now_us + restart_delay_us(task);
    } else {
        return core_end_task(core, task->id, final_state(task), now_us);
    }
    return core_decide(core, &event);
}
