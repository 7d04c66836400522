/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks behind the head of the main queue are tried for backfill, and in which order. */
#ifndef COLLOC_CORE_ASK_BACKFILL_LIST_H
#define COLLOC_CORE_ASK_BACKFILL_LIST_H

#include "core/state/state.h"

/* The tasks behind `head` that are tried, in order. The shortest are looked for in an equal part of
 * CORE_QUEUE_DEPTH_MAX of each user's queue. Returns how many, at most `most`. */
int core_list_behind(
    const struct core *core, const struct task *head, struct task **ret_tasks, int most);

/* Returns the one of the `n` tasks before it in order that waits and may not be passed, where both
 * could use the same GPUs; NULL: none. */
const struct task *core_find_obstacle(
    const struct core *core, const struct task *task, struct task *const *before, int n);

/* The same of a task behind `head`, where those behind it start in order (core_queue_goes_on). */
const struct task *core_held_up_by(
    const struct core *core, const struct task *task, const struct task *head);

#endif
