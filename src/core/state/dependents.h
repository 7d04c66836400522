/* SPDX-License-Identifier: Apache-2.0 */
/* The index of open dependencies. */
#ifndef COLLOC_CORE_STATE_DEPENDENTS_H
#define COLLOC_CORE_STATE_DEPENDENTS_H

#include "core/state/state.h"

/* Moves `group`, of which the range counts, on to the next range that has the id. */
bool core_next_range(const struct dependents *index, uint64_t id, struct dependent *group);

/* Where core_next_range starts. */
struct dependent core_before_ranges(
    const struct core *core, const struct dependents *index, uint64_t id);

/* Returns 0 when no task has the dependency any more. */
uint64_t core_first_dependent(const struct dependents *index, const struct dependency *range);

/* May the task, or the array, have these dependencies? They have to be on tasks before it, so that
 * there is no cycle. */
bool core_may_depend(uint64_t id, const struct dependency *after, int n_after);

/* Gives the task its own copy of the dependencies in its request. `place`: in its array, from 1; or
 * 0. Returns 0 or -ENOMEM. */
int core_take_dependencies(struct core *core, struct task *task, uint64_t place);

/* The task has no open dependencies any more. */
void core_drop_dependencies(struct core *core, struct task *task);

/* Applies a DEPENDENCY. Returns 0, or CORE_NOT_NOW. */
int core_apply_dependency(struct core *core, struct task *task, const struct event *event);

#endif
