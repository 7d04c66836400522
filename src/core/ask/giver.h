/* SPDX-License-Identifier: Apache-2.0 */
/* Which task gives way first to one beside it that has to be fast: a service, or a promise. */
#ifndef COLLOC_CORE_ASK_GIVER_H
#define COLLOC_CORE_ASK_GIVER_H

#include "core/state/state.h"

/*
 * The task beside `task` that gives way next: of the lowest priority, and of these the newest.
 * Services do not give way; to a promise, no task does that had a promise before it.
 *
 * Returns NULL where none can be suspended or paused.
 */
const struct task *core_find_giver(
    const struct core *core, const struct task *task, int64_t now_us);

/* Of the tasks that are paused for the same reason on a GPU of this one, the one that was paused
 * first goes on first: is it this one? */
bool core_comes_back_first(const struct core *core, const struct task *task);

#endif
