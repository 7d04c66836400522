/* SPDX-License-Identifier: Apache-2.0 */
/* Linked lists. A task also has a number, from which its position follows without a walk. */
#include "core/queue.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Tasks are numbered along their queue: a task's number less that of the first task is its
 * position. That holds while tasks come and go at the ends. After a change in the middle,
 * queue_ahead_of numbers them again.
 */
static void assign_number(struct task_queue *queue, struct task *task)
{
    if (task->previous)
        task->number = task->previous->number + 1;
    else
        task->number = task->next ? task->next->number - 1 : 0;
    queue->has_gaps |= task->previous && task->next;
}

static void insert_after(struct task_queue *queue, struct task *before, struct task *task)
{
    assert(!task->queue);
    struct task *after = before ? before->next : queue->first;
    task->previous = before;
    task->next = after;
    *(before ? &before->next : &queue->first) = task;
    *(after ? &after->previous : &queue->last) = task;
    task->queue = queue;
    queue->count++;
    queue->counts[task->request.priority - PRIORITY_LOW]++;
    assign_number(queue, task);
}

int queue_ahead_of(const struct task *task)
{
    struct task_queue *queue = task->queue;
    int64_t next = queue->first->number;
    if (queue->has_gaps)
        for (struct task *each = queue->first; each; each = each->next)
            each->number = next++;
    queue->has_gaps = false;
    return (int)(task->number - queue->first->number);
}

static bool is_behind(const struct task *task, const struct task *other)
{
    int priority = task->request.priority, before = other->request.priority;
    return priority < before || (priority == before && task->id > other->id);
}

void queue_push_in_order(struct task_queue *queue, struct task *task)
{
    struct task *before = queue->last;
    while (before && is_behind(before, task))
        before = before->previous;
    insert_after(queue, before, task);
}

void queue_remove(struct task *task)
{
    struct task_queue *queue = task->queue;
    assert(queue);
    queue->has_gaps |= task->previous && task->next;
    *(task->previous ? &task->previous->next : &queue->first) = task->next;
    *(task->next ? &task->next->previous : &queue->last) = task->previous;
    task->next = task->previous = NULL;
    task->queue = NULL;
    queue->count--;
    queue->counts[task->request.priority - PRIORITY_LOW]--;
}
