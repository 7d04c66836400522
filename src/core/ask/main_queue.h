/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the main queue. */
#ifndef COLLOC_CORE_ASK_MAIN_QUEUE_H
#define COLLOC_CORE_ASK_MAIN_QUEUE_H

#include "core/state/state.h"

/* Does a queue come before another one of the main queue, by rank and age of their first tasks? */
bool core_ranks_before(
    const struct core *core, const struct task_queue *queue, const struct task_queue *other);

/* Does a task come before a task of another queue of the main queue? By priority, rank and age. */
bool core_comes_before(const struct core *core, const struct task *task, const struct task *other);

/* The first task of the queue that comes first. Returns NULL when no task is queued. */
struct task *core_first_task(const struct core *core);

#endif
