/* SPDX-License-Identifier: Apache-2.0 */
/* What may have changed the schedule of first come, first served. */
#ifndef COLLOC_CORE_STATE_FIFO_MARKS_H
#define COLLOC_CORE_STATE_FIFO_MARKS_H

#include "core/state/state.h"

/* Applies a FIFO. Returns 0, CORE_NOT_NOW or -ENOMEM. */
int core_apply_fifo(struct core *core, const struct event *event);

/* Does the task have a place in the schedule, or may it get one? */
bool core_has_fifo_place(const struct core *core, const struct task *task);

/* The task waits in its queue, and may need a place. */
void core_note_arrival(struct core *core, const struct task *task);

/* The task gives up its place and its latest start: it may not start for now. */
void core_leave_fifo(struct core *core, struct task *task);

/* The schedule may be too long, and any task may lack a place. */
void core_doubt_fifo(struct core *core);

/* Does core_update_fifo have to be called? */
bool core_is_fifo_marked(const struct core *core);

/* The task has ended: if that was early, the schedule is marked as too long. */
void core_note_early_end(struct core *core, const struct task *ended);

#endif
