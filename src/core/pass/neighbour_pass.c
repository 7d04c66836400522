/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of suspended tasks that lie on a neighbour GPU (ask/neighbour.h) go to the host as soon as
 * a task wants the memory there. It is the last stage: what could start or be resumed without that
 * memory has been. A copy whose task is about to be resumed, or whose way to the host has just
 * failed, is left alone.
 */
#include "core/pass/neighbour_pass.h"

#include "core/ask/neighbour.h"
#include "core/decide/give_way.h"
#include "core/state/tasks.h"

static bool may_relocate(const struct task *task, int64_t now_us)
{
    return task->state == TASK_SUSPENDED && !task->ending && !task->run->yield.is_relocating &&
           task->run->yield.relocate_retry_us <= now_us;
}

int core_return_lent_memory(struct core *core, int64_t now_us)
{
    int r = 0;
    core->has_wanters = false; /* what could start has been started */
    for (int i = 0; i < core->view.n_gpus && core->n_copies && r == 0; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        if (gpu->n_copies == 0 || !core_is_memory_wanted(core, i, 0))
            continue;
        for (int k = 0; k < gpu->n_copies && r == 0; k++) {
            const struct task *task = core_find_task(core, gpu->copies[k].task);
            if (may_relocate(task, now_us))
                r = core_relocate_copy(core, task, now_us);
        }
    }
    return r;
}
