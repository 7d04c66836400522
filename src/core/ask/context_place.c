/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule, by the reason for which the task gives way:
 *
 *     an allocation          the context stays, whatever is free: to restore it the driver needs
 *                            memory that a full GPU may not have, and a process whose restore
 *                            fails never computes again. An allocation that still finds too
 *                            little waits for the next task that gives way. It leaves later
 *                            only for one that waits with the GPU to itself
 *     the GPU's time         it stays: no other task wants the memory
 *     a slot, another task   it stays if that task fits beside it
 *     a user, a failing GPU  it leaves: the GPU is to be empty
 */
#include "core/ask/context_place.h"

#include <math.h>
#include <string.h>

#include "core/ask/placement.h"
#include "core/questions.h"
#include "core/state/tasks.h"

/* The driver puts a process back only on a GPU of the model that it was on. */
static bool has_other_of_model(const struct cluster_view *view, int gpu)
{
    const struct gpu_view *own = &view->gpus[gpu];
    for (int i = 0; i < view->n_gpus; i++)
        if (i != gpu && view->gpus[i].id.node == own->id.node &&
            strcmp(view->gpus[i].id.name, own->id.name) == 0)
            return true;
    return false;
}

bool core_context_may_stay(const struct core *core, const struct task *task)
{
    if (!core->settings.carries_mps || core->settings.stays_on_gpus || task->n_gpus != 1 ||
        task->run->share.sharing == SHARING_MPS)
        return false;
    const struct gpu_view *gpu = &core->view.gpus[task->gpus[0]];
    return gpu->id.is_place && !gpu->id.is_mig_instance && !gpu->id.one_process &&
           resident_is_carried(gpu_view_resident(gpu, task->id)) &&
           !has_other_of_model(&core->view, task->gpus[0]);
}

/* What the residents besides the task are known to need beyond what they have. */
static double outstanding_besides(const struct gpu_view *gpu, const struct task *task)
{
    double bytes = 0;
    for (int i = 0; i < gpu->n_residents; i++)
        if (gpu->residents[i].task != task->id)
            bytes += resident_outstanding_bytes(&gpu->residents[i]);
    return bytes;
}

bool core_fits_beside_context(
    const struct core *core, const struct task *task, double bytes, uint64_t to_task)
{
    const struct task *other = core_find_task(core, to_task);
    const struct gpu_view *gpu = &core->view.gpus[task->gpus[0]];
    double context = reading_assume(task->run->yield.context_bytes, SUSPENSION_CONTEXT_BYTES);
    double left = reading_assume(gpu_view_free_bytes(gpu), 0) - gpu_view_returned_bytes(gpu) -
                  outstanding_besides(gpu, task) + fmax(0, bytes - context);
    return other && !other->exclusive && !core_wants_exclusive_gpus(core, other) &&
           core_needed_bytes(core, other) <= left;
}

bool core_may_context_leave(const struct task *task, enum context_use use, int64_t now_us)
{
    const struct task_yield *yield = &task->run->yield;
    return task_context_gpu(task) >= 0 && yield->keeps_context && !yield->has_ranks &&
           !yield->has_neighbour && !task->ending && yield->relocate_retry_us <= now_us &&
           (use == CONTEXT_FOR_WAIT || yield->reason != YIELD_TO_MEMORY);
}

double core_leavable_bytes(
    const struct core *core, const struct gpu_view *gpu, enum context_use use, int64_t now_us)
{
    double bytes = 0;
    for (int i = 0; i < gpu->n_absent; i++) {
        const struct task *task = core_find_task(core, gpu->absent[i].task);
        if (core_may_context_leave(task, use, now_us))
            bytes += reading_assume(task->run->yield.context_bytes, 0);
    }
    return bytes;
}

bool core_context_stays(
    const struct core *core, const struct task *task, enum yield_reason reason, uint64_t to_task)
{
    if (task->run->yield.by_user || !core_context_may_stay(core, task))
        return false;
    const struct gpu_view *gpu = &core->view.gpus[task->gpus[0]];
    struct reading used = gpu_view_resident(gpu, task->id)->mem_used_bytes;
    switch (reason) {
    case YIELD_TO_MEMORY:
    case YIELD_TO_SERVICE:
    case YIELD_TO_PROMISE:
    case YIELD_TO_PROBE:
    case YIELD_TO_SPEED:
        return true;
    case YIELD_TO_SLOT:
    case YIELD_TO_TASK:
    case YIELD_UNUSED:
        return used.valid && core_fits_beside_context(core, task, used.value, to_task);
    default:
        return false;
    }
}
