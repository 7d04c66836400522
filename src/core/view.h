/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of the GPUs (its data: view_data.h), and questions about it. Policies read it, only the
 * core writes it.
 */
#ifndef COLLOC_CORE_VIEW_H
#define COLLOC_CORE_VIEW_H

#include <math.h>

#include "base/clock.h"
#include "core/memory_domain.h"
#include "core/view_data.h"

/* The policies' settings. */
struct conditions {
    double smact_max;        /* the dissertation: 0.80 (section 6.2.2) */
    double smact_sum_max;    /* by MPS: of the level and a task's own; 0: smact_max alone counts */
    int64_t min_free_bytes;  /* for a task of unknown requirement; the dissertation: 5 GB */
    int64_t margin_bytes;    /* beyond the task's requirement; the dissertation: 2 GB */
    int64_t sample_valid_us; /* older samples count as none */
    int tasks_per_gpu_max;   /* 0: no limit */
    int starting_max; /* tasks on a GPU that have not shown their SM activity yet, and of which it
                         is not known, beside which the next may start (policy/starting.c); 0: no
                         task starts beside one whose memory has not settled */
    bool mps_users_together; /* MPS clients of several users may share a GPU: their servers take
                                turns */
    int server_power_max_w;  /* of all GPUs of a server together; 0: no limit (load_limits.c) */
    double power_max;        /* of a GPU that is shared: a part of its power limit; 0: no limit */
    int64_t pcie_max_bytes;  /* traffic of such a GPU, a second; 0: no limit */
    double slowdown_max;     /* of predictive: longest predicted time relative to alone */
};

/* The resident of a task. Returns NULL when the task is not on the GPU. */
struct resident *gpu_view_resident(const struct gpu_view *gpu, uint64_t task);

/* Can the carrier take away the memory of all processes that the resident has there, as last
 * listed? */
static inline bool resident_is_carried(const struct resident *resident)
{
    return resident->carried > 0 && resident->carried == resident->hooked + resident->unhooked;
}

/* Returns how many clients of MPS its tasks are: at least one for each task that shares by MPS.
 * Suspended ones count, too. */
static inline int gpu_view_mps_clients(const struct gpu_view *gpu)
{
    int n = 0;
    for (int i = 0; i < gpu->n_residents; i++)
        if (gpu->residents[i].sharing == SHARING_MPS)
            n += gpu->residents[i].mps_clients > 1 ? gpu->residents[i].mps_clients : 1;
    for (int i = 0; i < gpu->n_absent; i++)
        n += gpu->absent[i].mps_clients;
    return n;
}

/* Returns the bytes of copies that lie on the GPU, or are on their way there. */
double gpu_view_copied_bytes(const struct gpu_view *gpu);
double gpu_view_coming_bytes(const struct gpu_view *gpu);

/* Has the task's context stayed on the GPU? */
static inline bool gpu_view_has_context(const struct gpu_view *gpu, uint64_t task)
{
    for (int i = 0; i < gpu->n_absent; i++)
        if (gpu->absent[i].task == task)
            return true;
    return false;
}

/* Has the GPU lent memory for the copy of the task's, or is about to? */
static inline bool gpu_view_has_copy(const struct gpu_view *gpu, uint64_t task)
{
    for (int i = 0; i < gpu->n_copies; i++)
        if (gpu->copies[i].task == task)
            return true;
    return false;
}

/* Would the GPU be idle but for the context of the suspended task? */
bool gpu_view_is_idle_but_for(const struct gpu_view *gpu, const struct task *task);

/* The newest resident of the GPU's memory domain that has not settled. Returns NULL when all have.
 */
const struct resident *gpu_view_unsettled(const struct gpu_view *gpu);

/* As gpu_view_is_idle, but for the residents of the GPU itself. */
bool gpu_view_is_idle_otherwise(const struct gpu_view *gpu);

/*
 * Is the GPU idle? No resident in its memory domain, no context of a suspended task, no external
 * process, and hardly any memory in use (memory that a crash left behind is not idle). Where
 * NVIDIA's driver lists no processes, utilisation has to be 0.
 *
 * Returns false for everything unknown.
 */
static inline bool gpu_view_is_idle(const struct gpu_view *gpu)
{
    return gpu->n_residents == 0 && gpu_view_is_idle_otherwise(gpu);
}

/* Chosen: imports and the first data of most trainings take less, and then they have a CUDA
 * context; a program that takes longer finds its memory later (docs/placement.md). */
#define UNUSED_US (120 * SECOND_US)

/* Has the resident held no memory for so long that it is hardly just starting? Then it computes
 * nothing either. Returns false for everything unknown. */
static inline bool resident_is_unused(const struct resident *resident, int64_t now_us)
{
    return resident->empty_since_us && now_us - resident->empty_since_us >= UNUSED_US;
}

/* Is the GPU as good as idle: all its residents are unused, and its activity is known to be none?
 * Returns false for everything unknown. */
bool gpu_view_is_unused(const struct gpu_view *gpu, int64_t now_us);

/* Does the GPU's memory domain hold external processes, or memory of unknown origin? It may never
 * become idle. */
bool gpu_view_is_used_externally(const struct gpu_view *gpu, int64_t settle_us);

/* Has the GPU tasks, or had some less than `settle_us` ago? Otherwise its power is not theirs. */
bool gpu_view_draws_for_tasks(const struct gpu_view *gpu, int64_t settle_us);

/* Returns the watts that a task is expected to draw there: all that the GPU may, if its activity is
 * not known. */
double gpu_view_expected_w(const struct gpu_view *gpu, const struct expectation *expect);

/* Does the task run on any kind of GPU? Most do: then no name is compared. */
static inline bool task_takes_any_kind(const struct task *task)
{
    return !task->request.gpu_kind && task->state != TASK_SUSPENDED;
}

/* Returns the GPU with this label or UUID, of `size` bytes; -1: there is none. */
int cluster_view_find(const struct cluster_view *view, const char *name, size_t size);

/* Is the GPU of one of the kinds that the task names? See cluster_view_is_of_kind. */
bool cluster_view_matches_kind(const struct cluster_view *view, int gpu, const struct task *task);

/*
 * Is the GPU of a kind on which the task may run? A task names kinds; a suspended task continues
 * only on the model that it was taken off: NVIDIA's driver restores no process on another. One
 * whose context has stayed on a GPU continues only there.
 */
static inline bool cluster_view_is_of_kind(
    const struct cluster_view *view, int gpu, const struct task *task)
{
    return task_takes_any_kind(task) || cluster_view_matches_kind(view, gpu, task);
}

/*
 * May the task ever run on the GPU? It has to be a place of the right kind, no MIG instance for a
 * task of several GPUs, and not smaller than what was declared. An estimate may be wrong: it rules
 * a GPU out only when enough larger ones exist.
 */
bool cluster_view_suits(const struct cluster_view *view, int gpu, const struct task *task);

/*
 * Is the GPU healthy, may the task ever run there, and does nothing keep it from the task?
 *
 * claims:    kinds of claims that would (claim.h)
 * set_aside: for each GPU, what keeps it from the task, 0: nothing; NULL: nothing on all
 */
static inline bool cluster_view_is_available(const struct cluster_view *view, int gpu,
    const struct task *task, unsigned claims, const uint64_t *set_aside)
{
    return view->gpus[gpu].health == VIEW_OK && !claims_any(view->gpus[gpu].claims, claims) &&
           !(set_aside && set_aside[gpu]) && cluster_view_suits(view, gpu, task);
}

/* Returns the UUID of the MIG instance that the task has, since it has one at most; "": it has
 * whole GPUs, or none. Borrowed from the view. */
const char *cluster_view_instance_of(const struct cluster_view *view, const struct task *task);

/* Returns how far two GPUs are from each other: the larger, the farther. */
static inline char cluster_view_distance(const struct cluster_view *view, int a, int b)
{
    return view->distances ? view->distances[a * view->n_gpus + b] : VIEW_DISTANCE_UNKNOWN;
}

/* Are there enough GPUs for the task that are as large as its requirement? */
bool cluster_view_has_enough_larger(const struct cluster_view *view, const struct task *task);

/* The last part of cluster_view_suits: is a GPU that is a place for the task large enough? */
static inline bool cluster_view_is_large_enough(
    const struct cluster_view *view, int gpu, const struct task *task)
{
    const struct need *need = &task->request.need;
    return need->kind < NEED_ESTIMATED || need->bytes <= view->gpus[gpu].id.mem_total_bytes ||
           (need->kind == NEED_ESTIMATED && !cluster_view_has_enough_larger(view, task));
}

/* Returns the index behind the last GPU of the node that begins with GPU `first`; all GPUs of one
 * server are one node. */
int cluster_view_node_end(const struct cluster_view *view, int first);

/* Returns the memory that the resident is known to need and has not taken yet. Without a reading of
 * its memory, it counts as having taken all once it has settled. */
double resident_outstanding_bytes(const struct resident *resident);

/* Returns the bytes in use that no resident of the memory domain is known to use, and no copy of a
 * suspended task. Not valid without a sample. */
static inline struct reading gpu_view_unaccounted_bytes(const struct gpu_view *gpu)
{
    struct reading bytes = gpu->mem_used_bytes;
    const struct gpu_view *at = gpu;
    do {
        for (int i = 0; i < at->n_residents; i++)
            bytes.value -= reading_assume(at->residents[i].mem_used_bytes, 0);
        at = memory_domain_next(at);
    } while (at != gpu);
    if (gpu->n_copies)
        bytes.value -= gpu_view_copied_bytes(gpu);
    return bytes;
}

/* Returns by how much the residents of the memory domain were last seen to use more than is in use
 * now: one of them has given memory back, and its own place has not been sampled since. Until then
 * it is not known how much of that it will take again. */
static inline double gpu_view_returned_bytes(const struct gpu_view *gpu)
{
    return fmax(0, -reading_assume(gpu_view_unaccounted_bytes(gpu), 0));
}

/* Chosen: over smact_max a level counts in such steps, so that not each sample that shows a little
 * less makes a scheduling pass; and above ACTIVITY_FULL a task would find no SM. Returns the step
 * that the level has reached; 1 on a full GPU. */
#define ACTIVITY_STEP 0.05
#define ACTIVITY_FULL 0.99
static inline double activity_step(double level)
{
    return level > ACTIVITY_FULL ? 1 : ACTIVITY_STEP * floor(level / ACTIVITY_STEP);
}

/* Returns the free bytes as sampled, without those of copies that are on their way there. Not valid
 * without a sample. */
static inline struct reading gpu_view_free_bytes(const struct gpu_view *gpu)
{
    if (!gpu->mem_used_bytes.valid)
        return READING_NONE;
    double coming = gpu->n_copies ? gpu_view_coming_bytes(gpu) : 0;
    return reading_of((double)gpu->id.mem_total_bytes - gpu->mem_used_bytes.value - coming);
}

/*
 * Returns how many bytes a task can find free on the GPU, at most: INFINITY where it is idle, or
 * what is free is not known. A policy that compares a task with all GPUs of a large cluster reads
 * the view's list of these, which the core keeps, and of most GPUs nothing else.
 */
double gpu_view_open_bytes(const struct gpu_view *gpu);

/* False for a GPU that is not idle, as far as that is noted. */
static inline bool cluster_view_may_be_idle(const struct cluster_view *view, int gpu)
{
    return !view->open_bytes || isinf(view->open_bytes[gpu]);
}

#endif
