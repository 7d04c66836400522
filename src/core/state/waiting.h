/* SPDX-License-Identifier: Apache-2.0 */
/* The queues in which tasks wait, and the gate before them. */
#ifndef COLLOC_CORE_STATE_WAITING_H
#define COLLOC_CORE_STATE_WAITING_H

#include "core/state/state.h"

/* Can something else than its turn keep the task from starting, now or later? */
bool core_is_gated(const struct task *task);

/* The task is blocked: unless dependencies are open, it is examined now or when it may begin. */
void core_note_blocked(struct core *core, const struct task *task, int64_t now_us);

/* Is it in a queue to be placed or resumed, or running? */
bool core_is_at_work(const struct task *task);

/* Is any use of users or projects limited? */
bool core_has_user_limits(const struct core *core);

/* The task leaves the queues: another task of its array or its user may enter one. */
void core_leave_slot(struct core *core, const struct task *task);

/* The task enters the queue of its state. */
void core_start_waiting(struct core *core, struct task *task, int64_t now_us);

/* The task leaves its queue; the time in it is added up. */
void core_stop_waiting(struct task *task, int64_t now_us);

/* A task that has run out of GPU memory waits in the recovery queue, ahead of all others. */
void core_return_to_queue(struct core *core, struct task *task, int64_t now_us);

/* The task leaves its queue to be held; it is not waiting any more. */
void core_leave_queue(struct core *core, struct task *task, int64_t now_us);

/* It waits until it may begin. */
void core_block_task(struct core *core, struct task *task, int64_t now_us);

/* It goes into its queue, or is blocked. */
void core_enter_queue(struct core *core, struct task *task, int64_t now_us);

/* Moves the queued tasks into the queues of the other order. */
void core_change_order(struct core *core, enum queue_order order);

#endif
