#include "core/queue.h"

#include <assert.h>
#include <stddef.h>

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
}

void queue_push_back(struct task_queue *queue, struct task *task)
{
    insert_after(queue, queue->last, task);
}

void queue_push_in_order(struct task_queue *queue, struct task *task)
{
    struct task *before = queue->last;
    while (before && before->id > task->id)
        before = before->previous;
    insert_after(queue, before, task);
}

void queue_remove(struct task *task)
{
    struct task_queue *queue = task->queue;
    assert(queue);
    *(task->previous ? &task->previous->next : &queue->first) = task->next;
    *(task->next ? &task->next->previous : &queue->last) = task->previous;
    task->next = task->previous = NULL;
    task->queue = NULL;
    queue->count--;
}
