/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where is the context of a time-sliced task while it is suspended: on its GPU, or with its memory
 * on the host? The carrier takes the memory, at PCIe speed (docs/carrier.md). To take the context,
 * 0.5 to 0.9 GiB, the driver needs about a second each way, as long as the carrier for 20 GiB.
 *
 * A context that stays binds its task to the GPU. On a server with one GPU of the task's model that
 * costs nothing: the driver puts it back on no other one. With several, the task could be resumed
 * on the first that is free: there its context leaves with it.
 *
 *     1 GPU of 80 GiB, a and b of 30 GiB take turns    contexts stay: a turn costs 0.2 s + copies
 *     the same, and b needs 79.5 GiB, or no neighbour  a's context leaves: b could not start
 *     a is away, b runs, and c needs 79.5 GiB          a's context leaves, and b's when it is
 *                                                      c's turn (pass/context_pass.c)
 *     2 GPUs, three such tasks                         contexts leave: the next free GPU will do
 */
#ifndef COLLOC_CORE_ASK_CONTEXT_PLACE_H
#define COLLOC_CORE_ASK_CONTEXT_PLACE_H

#include "core/state/state.h"

/* Has the running task, which is time-sliced, a GPU on which its context would stay, unless that
 * memory is wanted? The carrier has to be able to take all of its processes, as last listed. */
bool core_context_may_stay(const struct core *core, const struct task *task);

/*
 * Does the other task find the memory that it needs on the running task's GPU beside the context
 * of that, when that is suspended?
 *
 * bytes:   what the running task holds there
 * to_task: the task that it gives way to; 0: none is known
 *
 * Returns false, too, if the other task is not known or has to have the GPU to itself.
 */
bool core_fits_beside_context(
    const struct core *core, const struct task *task, double bytes, uint64_t to_task);

/* For which task a context leaves. */
enum context_use {
    CONTEXT_FOR_START, /* one that starts or is resumed there. The context of a task that gave way
                          to an allocation stays: it could not come back when the GPU is full */
    CONTEXT_FOR_WAIT,  /* one that waits for memory with no other task on its GPU. Each context
                          leaves: nothing else can be freed, and its task comes back when the GPU
                          has room */
};

/* Is the task suspended, and can its context, which has stayed on its GPU, leave that now? Not of a
 * client of MPS, nor of ranks of NCCL: the driver takes none of them. Nor one that the driver has
 * just refused. */
bool core_may_context_leave(const struct task *task, enum context_use use, int64_t now_us);

/* Returns the bytes of the contexts on the GPU that can leave it now for such a task, with those
 * that are on their way. */
double core_leavable_bytes(
    const struct core *core, const struct gpu_view *gpu, enum context_use use, int64_t now_us);

/* Is the context of the running task to stay when it is suspended for the reason? */
bool core_context_stays(
    const struct core *core, const struct task *task, enum yield_reason reason, uint64_t to_task);

#endif
