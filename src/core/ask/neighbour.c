/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule: only between GPUs of one server that NVLink joins, neither a MIG instance; only from a
 * healthy GPU that no claim keeps for a task (claim.h), and of which a new sample shows so much
 * free memory beyond the margin and what its residents will still take; only while no task that
 * waits may run there. The carrier has to take all of the task's memory, and what stays on its own
 * GPU is its context: so it must not be in the way of the task that it gives way to.
 */
#include "core/ask/neighbour.h"

#include "core/ask/giving_way.h"
#include "core/ask/placement.h"
#include "core/memory_domain.h"
#include "core/state/tasks.h"

/* Distances of pairs that NVLink joins are below: src/gpu/topology.c. */
static const char DISTANCE_OF_PCIE = 'T';

/* Reasons for which a task is away for a short time, and its GPU need not be empty. */
static bool is_short_stop(enum yield_reason reason)
{
    return reason == YIELD_TO_SLOT || reason == YIELD_TO_MEMORY || reason == YIELD_TO_TASK;
}

/* ---- the task ---- */

static bool is_carried(const struct resident *resident)
{
    return resident->carried > 0 && resident->carried == resident->hooked + resident->unhooked;
}

static double context_bytes(const struct task *task)
{
    return reading_assume(task->run->yield.context_bytes, (double)SUSPENSION_CONTEXT_BYTES);
}

/* May the task's context stay, of which the driver's way would free the GPU? */
static bool may_context_stay(
    const struct core *core, const struct task *task, double bytes, uint64_t to_task)
{
    const struct task *other = core_find_task(core, to_task);
    const struct gpu_view *gpu = &core->view.gpus[task->gpus[0]];
    if (task->run->share.sharing == SHARING_MPS)
        return true; /* it stays in any case */
    double left = reading_assume(gpu_view_free_bytes(gpu), 0) + bytes - context_bytes(task);
    return other && !other->request.exclusive && !other->exclusive &&
           core_needed_bytes(core, other) <= left;
}

/* ---- the neighbour ---- */

static bool is_linked(const struct cluster_view *view, int from, int to)
{
    return from != to && view->gpus[from].id.node == view->gpus[to].id.node &&
           cluster_view_distance(view, from, to) < DISTANCE_OF_PCIE;
}

static bool may_lend(const struct core *core, const struct gpu_view *gpu, int64_t now_us)
{
    return gpu->health == VIEW_OK && gpu->id.is_place && !gpu->id.is_mig_instance &&
           !gpu->next_in_domain && !gpu->id.one_process && core->n_advances == 0 &&
           !claims_any(gpu->claims, ~0U) && !gpu_view_unsettled(gpu) &&
           now_us - gpu->sampled_us <= core->settings.conditions.sample_valid_us;
}

/* What residents are known to need beyond what they have. */
static double outstanding_bytes(const struct gpu_view *gpu)
{
    double bytes = 0;
    for (int i = 0; i < gpu->n_residents; i++)
        bytes += resident_outstanding_bytes(&gpu->residents[i]);
    return bytes;
}

static double lendable_bytes(const struct core *core, const struct gpu_view *gpu)
{
    struct reading free_bytes = gpu_view_free_bytes(gpu);
    if (!free_bytes.valid)
        return 0;
    return free_bytes.value - outstanding_bytes(gpu) - gpu_view_returned_bytes(gpu) -
           gpu_view_coming_bytes(gpu) - (double)core->settings.conditions.margin_bytes;
}

/* ---- who wants it ---- */

static bool waits_for_gpus(const struct task *task)
{
    return task->queue && (task->state == TASK_QUEUED || task->state == TASK_RECOVERING ||
                              task->state == TASK_SUSPENDED);
}

static bool has_waiting_allocation(const struct core *core, const struct gpu_view *gpu)
{
    for (int i = 0; i < gpu->n_residents && core->n_memory_waits; i++)
        if (core_find_task(core, gpu->residents[i].task)->run->memory_wait.bytes)
            return true;
    return false;
}

static bool wants_gpu(const struct core *core, const struct task *task, int gpu, uint64_t but)
{
    return task->id != but && waits_for_gpus(task) && cluster_view_suits(&core->view, gpu, task);
}

bool core_is_memory_wanted(const struct core *core, int gpu, uint64_t but)
{
    const struct gpu_view *view = &core->view.gpus[gpu];
    bool is_wanted = has_waiting_allocation(core, view) || claims_any(view->claims, ~0U);
    for (int i = 0; i < core->n_tasks && !is_wanted; i++)
        is_wanted = wants_gpu(core, core->tasks[i], gpu, but);
    struct reading free_bytes = gpu_view_free_bytes(view);
    return is_wanted || (free_bytes.valid && free_bytes.value < outstanding_bytes(view));
}

int core_find_neighbour(const struct core *core, const struct task *task, enum yield_reason reason,
    uint64_t to_task, int64_t now_us)
{
    const struct task_yield *yield = &task->run->yield;
    struct reading bytes = core_bytes_of(core, task);
    double most = 0;
    int best = -1;
    if (!core->settings.neighbour_memory || !is_short_stop(reason) || task->n_gpus != 1 ||
        yield->by_user || yield->neighbour_failed || !bytes.valid)
        return -1;
    const struct gpu_view *own = &core->view.gpus[task->gpus[0]];
    if (own->id.is_mig_instance || !is_carried(gpu_view_resident(own, task->id)) ||
        !may_context_stay(core, task, bytes.value, to_task))
        return -1;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        double left = lendable_bytes(core, gpu);
        if (!is_linked(&core->view, task->gpus[0], i) || !may_lend(core, gpu, now_us) ||
            left < bytes.value || left <= most || core_is_memory_wanted(core, i, to_task))
            continue;
        most = left;
        best = i;
    }
    return best;
}
