/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds promises of speed. While a task is measured to take longer than it was promised
 * (state/promise.c), the tasks beside it give way, one after the other: those without a promise
 * first, of these the lowest priority, and of these the newest. One that another GPU takes at once
 * is moved there. Else it is suspended, or paused where that is all that is possible. Once the
 * promise has been kept for the hold, one of them continues.
 *
 *     t=0    p is promised 1.2 and alone        1.0
 *     t=60   a is placed beside it              1.15 predicted, 1.5 measured
 *     t=80   a is paused                        1.0; the hold is 120 s
 *     t=200  a goes on                          1.5
 *     t=220  a is paused                        1.0; the hold is 240 s now
 *
 * Of two tasks with promises on a GPU, the older one's holds.
 *
 * Where too many share a GPU without a promise (state/crowding.c), the one too many gives way as
 * well, but only if that is cheap: it is moved or suspended, so that its memory is free, and
 * only once it has computed twenty times as long as that takes, so never twice without having
 * computed. It comes back when the hold is over, or with room elsewhere.
 */
#include "core/pass/promise_pass.h"

#include "core/ask/copy_room.h"
#include "core/ask/giver.h"
#include "core/ask/giving_way.h"
#include "core/decide/give_way.h"
#include "core/state/crowding.h"
#include "core/state/promise.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* How a task gives way, and for what. */
struct way {
    enum yield_reason reason;
    const struct task *to;
};

/* What could not be moved or suspended is not tried again: each attempt stops it for seconds. */
static int give_way(
    struct core *core, const struct task *task, const struct way *way, int64_t now_us)
{
    struct reading bytes = core_bytes_of(core, task);
    bool may_move = bytes.valid && task->run->yield.failures == 0 &&
                    core_may_suspend(core, task, now_us);
    int gpu = may_move ? core_find_destination(core, task, bytes.value, now_us) : -1;
    if (gpu < 0)
        return core_stop_task(core, task, way->reason, way->to->id, now_us);
    return core_move_task(core, task, &gpu, bytes, way->reason, way->to->id, now_us);
}

static int hold_promise(struct core *core, const struct task *promised, int64_t now_us)
{
    const struct task *task = core_is_promise_missed(promised, now_us)
                                  ? core_find_giver(core, promised, now_us)
                                  : NULL;
    return task ? give_way(core, task, &(struct way){YIELD_TO_PROMISE, promised}, now_us) : 0;
}

static bool is_cheap(const struct core *core, const struct task *task, int64_t now_us)
{
    int64_t computed_us = now_us - task_runs_since_us(task);
    return core_may_suspend(core, task, now_us) && task->run->yield.failures == 0 &&
           computed_us >= CORE_RUN_PER_COST * core_yield_cost_us(core, task);
}

static int leave_crowd(struct core *core, const struct task *task, int64_t now_us)
{
    bool must = core_is_promise_missed(task, now_us) && is_cheap(core, task, now_us);
    const struct task *slowest = must ? core_slowest_beside(core, task) : NULL;
    return slowest ? give_way(core, task, &(struct way){YIELD_TO_SPEED, slowest}, now_us) : 0;
}

/* Do the promises beside the paused task let it continue? True also when there is none any more. */
static bool may_go_on(const struct core *core, const struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        for (int k = 0; k < gpu->n_residents; k++) {
            const struct task *other = core_find_task(core, gpu->residents[k].task);
            if (other != task && other->state == TASK_RUNNING &&
                now_us < core_promise_opens_us(other))
                return false;
        }
    }
    return true;
}

int core_schedule_promises(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->n_tasks && core->view.has_promises && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (task->state == TASK_RUNNING && !task->ending)
            r = core_has_promise(task) ? hold_promise(core, task, now_us)
                                       : leave_crowd(core, task, now_us);
        else if (task->state == TASK_PAUSED && core_waits_for_promise(task) && !task->ending &&
                 may_go_on(core, task, now_us) && core_comes_back_first(core, task))
            r = core_continue_task(core, task, now_us);
    }
    return r;
}
