/* SPDX-License-Identifier: Apache-2.0 */
/* A first-in first-out queue of tasks, linked through the tasks themselves. */
#ifndef COLLOC_CORE_QUEUE_H
#define COLLOC_CORE_QUEUE_H

#include "core/task.h"

struct task_queue {
    struct task *first, *last;
    int count;
    int counts[PRIORITY_URGENT - PRIORITY_LOW + 1]; /* of each class of priority */
    bool has_gaps; /* the numbers of its tasks are no positions (queue.c) */
    int *total;    /* counts the tasks of several queues together; NULL: of none */
};

/* Puts a task that is in no queue behind those of a higher priority, and of the same priority
 * behind all that were submitted before it: new tasks at the end, requeued ones where they
 * belong. */
void queue_push_in_order(struct task_queue *queue, struct task *task);

/* Returns how many tasks are before it in its queue. Walks the queue only after a change in its
 * middle. */
int queue_ahead_of(const struct task *task);

/* Returns how many tasks of this class of priority it has. */
static inline int queue_count_of(const struct task_queue *queue, int priority)
{
    return queue->counts[priority - PRIORITY_LOW];
}

/* Takes the task out of the queue that it is in; it must be in one. */
void queue_remove(struct task *task);

#endif
