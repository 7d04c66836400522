/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host memory that copies of tasks' GPU memory take: of a task that is off its GPUs, that is on
 * its way there or back, or that moves. A copy on a neighbour GPU takes none. On its way out a task
 * counts with all that its GPUs list of it; away, without the contexts that have stayed. What is
 * not known is not counted: the driver of the core knows what it has copied, and refuses.
 */
#include "core/state/copies.h"

#include <math.h>

#include "core/state/users.h"

struct reading core_copy_bytes(const struct core *core, const struct task *task)
{
    struct reading sum = reading_of(0);
    for (int i = 0; i < task->n_gpus && sum.valid; i++) {
        const struct resident *on = gpu_view_resident(&core->view.gpus[task->gpus[i]], task->id);
        struct reading each = on->mem_used_bytes.valid ? on->mem_used_bytes : on->need_bytes;
        sum = each.valid ? reading_of(sum.value + each.value) : READING_NONE;
    }
    return sum;
}

static double away_bytes(const struct task *task)
{
    const struct task_yield *yield = &task->run->yield;
    double each = reading_assume(yield->bytes, 0) - reading_assume(yield->context_bytes, 0);
    return fmax(0, each) * task->request.gpus;
}

static double copy_bytes(const struct core *core, const struct task *task)
{
    const struct task_yield *yield = &task->run->yield;
    if (yield->has_neighbour && !yield->is_relocating)
        return 0;
    switch (task->state) {
    case TASK_SUSPENDING:
    case TASK_MOVING:
        return reading_assume(core_copy_bytes(core, task), 0);
    case TASK_SUSPENDED:
    case TASK_RESUMING:
        return away_bytes(task);
    default:
        return 0;
    }
}

void core_count_copy(struct core *core, struct task *task)
{
    struct core_user *user = task_has_run(task) ? core_find_user(core, task->uid) : NULL;
    if (!user)
        return;
    double bytes = copy_bytes(core, task);
    user->copies_bytes += bytes - task->run->yield.counted_bytes;
    task->run->yield.counted_bytes = bytes;
}
