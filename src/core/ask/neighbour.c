/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule: only between GPUs of one server that NVLink joins, neither a MIG instance; only from a
 * healthy GPU that no claim keeps for a task (claim.h), and of which a new sample shows so much
 * free memory beyond the margin and what its residents will still take; only while no task that
 * waits may run there; only if the copy is expected to take less time than one to the host. The
 * carrier has to take all of the task's memory, and what stays on its own GPU is its context: so it
 * must not be in the way of the task that it gives way to.
 */
#include "core/ask/neighbour.h"

#include <string.h>

#include "core/ask/context_place.h"
#include "core/ask/giving_way.h"
#include "core/ask/placement.h"
#include "core/memory_domain.h"
#include "core/questions.h"
#include "core/state/tasks.h"

/* Distances of pairs that NVLink joins are below: src/gpu/topology.c. */
static const char DISTANCE_OF_PCIE = 'T';

/* Reasons for which a task is away for a short time, and its GPU need not be empty. */
static bool is_short_stop(enum yield_reason reason)
{
    return reason == YIELD_TO_SLOT || reason == YIELD_TO_MEMORY || reason == YIELD_TO_TASK;
}

/* ---- the task ---- */

/* May the task's context stay, of which the driver's way would free the GPU? That of a client of
 * MPS stays in any case. */
static bool may_context_stay(
    const struct core *core, const struct task *task, double bytes, uint64_t to_task)
{
    return task->run->share.sharing == SHARING_MPS ||
           core_fits_beside_context(core, task, bytes, to_task);
}

/* Does the way to a neighbour and back take less time than the one to the host? As far as it was
 * learned: PCIe may be as fast as the links of some GPUs. */
static bool is_sooner_near(const struct core *core, int gpu, double bytes)
{
    const struct suspension_cost *host = core_stop_cost(core, gpu, SUSPENSION_BY_CARRIER);
    struct suspension_cost of_client = suspension_cost_of_client(host);
    return suspension_stop_us(core_stop_cost(core, gpu, SUSPENSION_TO_NEIGHBOUR), bytes) <
           suspension_stop_us(&of_client, bytes);
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
           (double)core->settings.conditions.margin_bytes;
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

/* The same GPUs suit both, as far as can be seen at once. */
static bool wants_as(const struct task *task, const struct task *other)
{
    const char *kind = task->request.gpu_kind, *of_other = other->request.gpu_kind;
    return task->state != TASK_SUSPENDED && other->state != TASK_SUSPENDED &&
           task->request.gpus == other->request.gpus &&
           task->request.need.kind == other->request.need.kind &&
           task->request.need.bytes == other->request.need.bytes &&
           (kind == of_other || (kind && of_other && strcmp(kind, of_other) == 0));
}

/* Notes a task with each GPU that it wants. Returns of how many GPUs two tasks are known now. */
static int note_wanter(struct core *core, const struct task *task)
{
    int n = 0;
    for (int i = 0; i < core->view.n_gpus; i++) {
        struct gpu_wanter *wanter = &core->wanters[i];
        if (!wanter->by_others && cluster_view_suits(&core->view, i, task)) {
            wanter->by_others = wanter->task != 0;
            wanter->task = wanter->task ? wanter->task : task->id;
        }
        n += wanter->by_others;
    }
    return n;
}

/* One walk over the tasks, which ends when each GPU is wanted by two of them. Of tasks that want
 * the same as the one before, two are enough. */
static void find_wanters(struct core *core)
{
    const struct task *before = NULL;
    int n_alike = 0, n_known = 0;
    for (int i = 0; i < core->view.n_gpus; i++)
        core->wanters[i] = (struct gpu_wanter){0};
    for (int i = 0; i < core->n_tasks && n_known < core->view.n_gpus; i++) {
        const struct task *task = core->tasks[i];
        if (!waits_for_gpus(task))
            continue;
        n_alike = before && wants_as(task, before) ? n_alike + 1 : 0;
        before = task;
        if (n_alike < 2)
            n_known = note_wanter(core, task);
    }
    core->has_wanters = true;
}

static bool is_waited_for(struct core *core, int gpu, uint64_t but)
{
    if (!core->has_wanters)
        find_wanters(core);
    const struct gpu_wanter *wanter = &core->wanters[gpu];
    return wanter->by_others || (wanter->task && wanter->task != but);
}

bool core_is_memory_wanted(struct core *core, int gpu, uint64_t but)
{
    const struct gpu_view *view = &core->view.gpus[gpu];
    bool is_wanted = has_waiting_allocation(core, view) || claims_any(view->claims, ~0U) ||
                     is_waited_for(core, gpu, but);
    struct reading free_bytes = gpu_view_free_bytes(view);
    return is_wanted || (free_bytes.valid && free_bytes.value < outstanding_bytes(view));
}

int core_find_neighbour(struct core *core, const struct task *task, enum yield_reason reason,
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
    if (own->id.is_mig_instance || !resident_is_carried(gpu_view_resident(own, task->id)) ||
        !may_context_stay(core, task, bytes.value, to_task) ||
        !is_sooner_near(core, task->gpus[0], bytes.value))
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
