/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs are kept from tasks: drained for a recovering task, reserved for the head. */
#ifndef COLLOC_CORE_STATE_CLAIMS_H
#define COLLOC_CORE_STATE_CLAIMS_H

#include "core/state/state.h"

/* Reserves no GPU for the head of the queue any more. */
void core_release_reservation(struct core *core);

/* Drains no GPU any more. */
void core_stop_draining(struct core *core);

/* The suspended task waits for GPUs. Keeps those on which alone it can be resumed for it, unless
 * they are kept for another. Returns whether there are such: tasks that could start elsewhere need
 * not wait for it. */
bool core_keep_for_return(struct core *core, const struct task *task);

/* The same of a task that must be back in time: no other task comes there, suspended or not. */
bool core_keep_for_recall(struct core *core, const struct task *task);

/* Keeps no GPU for suspended tasks any more: each pass finds again for which. */
void core_release_returns(struct core *core);

/* The task needs no drained GPUs any more. */
void core_forget_drains(struct core *core, uint64_t id);

#endif
