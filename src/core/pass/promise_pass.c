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
 */
#include "core/pass/promise_pass.h"

#include "core/ask/copy_room.h"
#include "core/ask/giver.h"
#include "core/ask/giving_way.h"
#include "core/decide/give_way.h"
#include "core/state/promise.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* What could not be moved or suspended is not tried again: each attempt stops it for seconds. */
static int give_way(
    struct core *core, const struct task *task, const struct task *promised, int64_t now_us)
{
    struct reading bytes = core_bytes_of(core, task);
    bool may_move = bytes.valid && task->run->yield.failures == 0 &&
                    core_may_suspend(core, task, now_us);
    int gpu = may_move ? core_find_destination(core, task, bytes.value, now_us) : -1;
    if (gpu < 0)
        return core_stop_task(core, task, YIELD_TO_PROMISE, promised->id, now_us);
    return core_move_task(core, task, &gpu, bytes, YIELD_TO_PROMISE, promised->id, now_us);
}

static int hold_promise(struct core *core, const struct task *promised, int64_t now_us)
{
    const struct task *task = core_is_promise_missed(promised, now_us)
                                  ? core_find_giver(core, promised, now_us)
                                  : NULL;
    return task ? give_way(core, task, promised, now_us) : 0;
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
        if (core_has_promise(task) && task->state == TASK_RUNNING)
            r = hold_promise(core, task, now_us);
        else if (task->state == TASK_PAUSED && core_waits_for_promise(task) && !task->ending &&
                 may_go_on(core, task, now_us) && core_comes_back_first(core, task))
            r = core_continue_task(core, task, now_us);
    }
    return r;
}
