/* SPDX-License-Identifier: Apache-2.0 */
/* The residents of GPUs: a task comes to its GPUs and leaves them. */
#ifndef COLLOC_CORE_STATE_RESIDENTS_H
#define COLLOC_CORE_STATE_RESIDENTS_H

#include "core/memory_domain.h"
#include "core/state/state.h"

/* Notes the open capacity of the GPU and of those that share its memory. Call it when its
 * residents, its size or its sample have changed. */
static inline void core_note_open(struct core *core, int gpu)
{
    const struct gpu_view *gpus = core->view.gpus, *at = &gpus[gpu];
    do {
        core->view.open_bytes[at - gpus] = gpu_view_open_bytes(at);
        at = memory_domain_next(at);
    } while (at != &gpus[gpu]);
}

/* Another time limit: its residents show when it ends the task. */
void core_note_time_limit(struct core *core, const struct task *task, int64_t now_us);

/* The task is no resident of the GPU any more. */
void core_remove_resident(struct core *core, int gpu, uint64_t id, int64_t now_us);

/* Makes the task a resident of the GPU, which is in its list of GPUs. Returns 0 or -ENOMEM. */
int core_add_to_gpu(struct core *core, struct task *task, int gpu, int64_t now_us);

/* Notes that the task, which needs no GPU, has an attempt. Returns 0 or -ENOMEM. */
int core_add_to_host(struct core *core, uint64_t id);

/* Are these indices of GPUs, at least one? */
bool core_are_gpus(const struct core *core, const int *gpus, int n);

/* Is each of the GPUs named once? */
bool core_are_different(const int *gpus, int n);

/* Returns how many of the GPUs are not the task's. */
int core_count_new(const struct task *task, const int *gpus, int n);

/* The task is about to leave its GPUs: where `context_bytes` says that its contexts stay, they are
 * noted there. Returns 0 or -ENOMEM. */
int core_keep_contexts(struct core *core, struct task *task);

/* They are no longer those of a suspended task. */
void core_remove_context(struct core *core, struct task *task);

/* The copy of the task's memory is to lie on a neighbour GPU, lies there, or does not any more.
 * core_add_copy returns 0 or -ENOMEM. */
int core_add_copy(struct core *core, struct task *task, int gpu, double bytes);
void core_note_copied(struct core *core, const struct task *task, double bytes);
void core_remove_copy(struct core *core, struct task *task);

/* The task gives up its GPUs; one without a GPU is no longer noted as on the host. */
void core_release_gpus(struct core *core, struct task *task, int64_t now_us);

#endif
