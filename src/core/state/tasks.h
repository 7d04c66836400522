/* SPDX-License-Identifier: Apache-2.0 */
/* All tasks by id. */
#ifndef COLLOC_CORE_STATE_TASKS_H
#define COLLOC_CORE_STATE_TASKS_H

#include "core/state/state.h"

/* The position in core->tasks of the first task with an id of at least `id`. */
int core_task_position(const struct core *core, uint64_t id);

/* By id. Returns NULL when there is none. */
struct task *core_find_task(const struct core *core, uint64_t id);

/* Returns how people name the task; its id, where there is no such task any more. */
struct task_label core_task_label(const struct core *core, uint64_t id);

/* A new task, zeroed but for its id. Returns NULL when memory is out. */
struct task *core_add_task(struct core *core, uint64_t id);

#endif
