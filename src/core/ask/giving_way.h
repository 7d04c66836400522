/* SPDX-License-Identifier: Apache-2.0 */
/* Can a running task be suspended or moved, and what does that cost? */
#ifndef COLLOC_CORE_ASK_GIVING_WAY_H
#define COLLOC_CORE_ASK_GIVING_WAY_H

#include "core/state/state.h"

/* Chosen: stopping a task costs at most 1/20 of the time that it computes. */
enum { CORE_RUN_PER_COST = 20 };

/* Can NVIDIA's driver, or the carrier, suspend the running task, as far as is known? */
bool core_can_suspend(const struct core *core, const struct task *task);

/* Do contexts of the task stay on its GPUs while it is suspended, as far as is known: of clients of
 * MPS, and of ranks of NCCL, which are known from their first suspension on? */
bool core_keeps_contexts(const struct task *task);

/* How much of the memory that the task uses on a GPU is free there while it is suspended: all but a
 * context that stays. */
double core_freed_bytes(const struct task *task, double used_bytes);

/* Have the running task's processes long not used its GPUs (setting unused-after)? */
bool core_is_inactive(const struct core *core, const struct task *task);

/* The GPU memory that the running task holds or needs on each GPU. Not valid: neither is known. */
struct reading core_bytes_of(const struct core *core, const struct task *task);

/* What suspending and resuming the task would take, as far as its memory is known. */
int64_t core_yield_cost_us(const struct core *core, const struct task *task);

/* From when on may the running task give way to one of a higher priority? At once, but again only
 * when it has computed CORE_RUN_PER_COST times as long as a stop costs. */
int64_t core_rested_us(const struct core *core, const struct task *task);

/* Is the task taken for ranks of NCCL, which wait for one another in collectives? Each on several
 * GPUs is: one process for all of them is seldom. */
static inline bool core_may_be_ranks(const struct task *task)
{
    return task->n_gpus > 1;
}

/* May the core pause it now? Ranks that were paused first run for a while, so that a collective
 * that had begun before can end. */
bool core_may_pause(const struct core *core, const struct task *task, int64_t now_us);

/* Can a user's SUSPEND or MOVE be met now? True for other events. */
bool core_is_command_possible(const struct core *core, const struct event *event);

/* Can the running task be moved to the GPU when it holds `bytes` there, with the margin? */
bool core_can_take(
    const struct core *core, const struct task *task, double bytes, int gpu, int64_t now_us);

/* The GPU with most free memory among those to which the running task can be moved when it holds
 * `bytes` there, with the margin. Returns -1 when there is none, or the task has several GPUs. */
int core_find_destination(
    const struct core *core, const struct task *task, double bytes, int64_t now_us);

#endif
