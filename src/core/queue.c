/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of tasks as linked lists. A task also has a number, from which its position follows
 * without a walk. */
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

static void count_task(struct task_queue *queue, int change)
{
    queue->count += change;
    if (queue->total)
        *queue->total += change;
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
    count_task(queue, 1);
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

/* How many tasks of a lower class of priority there are: they are the last. */
static int count_lower(const struct task_queue *queue, int priority)
{
    int n = 0;
    for (int lower = PRIORITY_LOW; lower < priority; lower++)
        n += queue_count_of(queue, lower);
    return n;
}

/* The last task that comes before the ids from `id` on, of the `n` ones of a class that end with
 * `last`. */
static struct task *find_backwards(struct task *last, int n, uint64_t id)
{
    for (; n > 0 && last->id > id; n--)
        last = last->previous;
    return last;
}

/* The last task that comes before the id, in a queue of one class whose last task does not. */
static struct task *find_forwards(const struct task_queue *queue, uint64_t id)
{
    struct task *before = NULL;
    for (struct task *next = queue->first; next->id < id; next = next->next)
        before = next;
    return before;
}

/* All tasks of a queue are mostly of one class: then the end whose id is nearer is nearer. */
static bool is_nearer_to_first(const struct task_queue *queue, const struct task *task)
{
    int n = queue_count_of(queue, task->request.priority);
    if (n == 0 || n < queue->count || task->id > queue->last->id)
        return false;
    uint64_t first = queue->first->id;
    return task->id < first || task->id - first < queue->last->id - task->id;
}

void queue_push_in_order(struct task_queue *queue, struct task *task)
{
    if (is_nearer_to_first(queue, task)) {
        insert_after(queue, find_forwards(queue, task->id), task);
        return;
    }
    struct task *before = queue->last;
    int priority = task->request.priority;
    for (int n = count_lower(queue, priority); n > 0; n--)
        before = before->previous;
    insert_after(queue, find_backwards(before, queue_count_of(queue, priority), task->id), task);
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
    count_task(queue, -1);
    queue->counts[task->request.priority - PRIORITY_LOW]--;
}
