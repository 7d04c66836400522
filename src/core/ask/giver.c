/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service that misses its latency target (pass/service_pass.c), and a task that does not have its
 * promised speed (pass/promise_pass.c), are helped alike: the tasks beside it give way, one after
 * the other, as long as that helps.
 */
#include "core/ask/giver.h"

#include "core/ask/copy_room.h"
#include "core/ask/giving_way.h"
#include "core/state/crowding.h"
#include "core/state/promise.h"
#include "core/state/tasks.h"

/* Of two promises the older one holds. The newer one is broken for it only once the older one would
 * be: when that task has been slower than promised in all. */
static bool is_promise_first(const struct task *task, const struct task *than)
{
    return core_has_promise(task) && !than->request.service.is_service &&
           (!core_gives_way_rather(task, than) || !core_is_behind_promise(than));
}

const struct task *core_find_giver(const struct core *core, const struct task *task, int64_t now_us)
{
    const struct task *found = NULL;
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        for (int k = 0; k < gpu->n_residents; k++) {
            const struct task *other = core_find_task(core, gpu->residents[k].task);
            bool can_stop = core_may_pause(core, other, now_us) ||
                            core_may_suspend(core, other, now_us);
            bool may_be = other != task && can_stop && other->state == TASK_RUNNING &&
                          !other->ending && !other->request.service.is_service &&
                          !is_promise_first(other, task);
            if (may_be && (!found || core_gives_way_rather(other, found)))
                found = other;
        }
    }
    return found;
}

static bool stopped_before(const struct task *other, const struct task *task)
{
    const struct task_yield *yield = &other->run->yield;
    return other != task && other->state == TASK_PAUSED &&
           yield->reason == task->run->yield.reason && !yield->by_user &&
           yield->since_us < task->run->yield.since_us && task_shares_gpu(task, other);
}

bool core_comes_back_first(const struct core *core, const struct task *task)
{
    for (int i = 0; i < core->n_tasks; i++)
        if (stopped_before(core->tasks[i], task))
            return false;
    return true;
}
