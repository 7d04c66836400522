/* SPDX-License-Identifier: Apache-2.0 */
/* A first-in first-out queue of tasks, linked through the tasks themselves. */
#ifndef COLLOC_CORE_QUEUE_H
#define COLLOC_CORE_QUEUE_H

#include "core/task.h"

struct task_queue {
    struct task *first, *last;
    int count;
    bool has_gaps; /* the numbers of its tasks do not count them any more */
};

/* Puts it where its submission belongs: behind all that were submitted no later. For tasks that
 * come back. */
void queue_push_in_order(struct task_queue *queue, struct task *task);

/* How many tasks are before it in its queue. Costs nothing for all the tasks of a queue in a row.
 */
int queue_ahead_of(const struct task *task);

/* Takes the task out of the queue that it is in. */
void queue_remove(struct task *task);

#endif
