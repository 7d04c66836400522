/* SPDX-License-Identifier: Apache-2.0 */
/* Do too many tasks share a GPU, as their measured speeds show? */
#ifndef COLLOC_CORE_STATE_CROWDING_H
#define COLLOC_CORE_STATE_CROWDING_H

#include "core/state/state.h"

/* Of two tasks beside each other, does the first give way rather? Those without a promise do, of
 * these the lowest priority, and of these the newest. */
bool core_gives_way_rather(const struct task *a, const struct task *b);

/* Is the task the first that gives way where it runs, and are the tasks there too slow with it, as
 * all of their speeds show that were last measured? */
bool core_is_one_too_many(const struct core *core, const struct task *task, int64_t now_us);

/* Returns the task beside it that takes longest relative to its time alone, as last measured; NULL
 * where it is alone. */
const struct task *core_slowest_beside(const struct core *core, const struct task *task);

#endif
