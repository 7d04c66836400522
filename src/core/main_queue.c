/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the main queue.
 *
 * A queue is in the order of priority, then of age (queue.c). With ORDER_FIFO there is one. With
 * ORDER_FAIR each user has one, and the queues come in the order of keys:
 *
 *   1. the priority of the queue's first task;
 *   2. the fair rank of the user (users.c): the one with less usage for each share comes first;
 *   3. the age of the queue's first task.
 *
 * Each placement changes the rank of its user, so the order is decided again for each head. A queue
 * is skipped while its first task cannot be served by the healthy GPUs, or waits for its estimate:
 * other users do not wait for that. With one user there is one queue, as with ORDER_FIFO.
 */
#include <errno.h>
#include <string.h>

#include "base/top_k.h"
#include "core/core_private.h"

static const char *const order_names[QUEUE_ORDERS] = {[ORDER_FAIR] = "fair", [ORDER_FIFO] = "fifo"};

const char *queue_order_name(enum queue_order order)
{
    return order_names[order];
}

int queue_order_parse(const char *name, enum queue_order *ret_order)
{
    for (int i = 0; i < QUEUE_ORDERS; i++) {
        if (strcmp(order_names[i], name) == 0) {
            *ret_order = (enum queue_order)i;
            return 0;
        }
    }
    return -EINVAL;
}

struct task_queue *core_queue_of(struct core *core, const struct task *task)
{
    if (core->settings.order == ORDER_FIFO)
        return &core->main_queue;
    return &core_find_user(core, task->uid)->queue;
}

static const struct task_queue *queue_at(const struct core *core, int i)
{
    if (core->settings.order == ORDER_FIFO)
        return i == 0 ? &core->main_queue : NULL;
    return i < core->users->n ? &core->users->list[i]->queue : NULL;
}

const struct task_queue *core_main_queue(const struct core *core, int i)
{
    return queue_at(core, i);
}

int core_queued_count(const struct core *core)
{
    return core->n_queued;
}

/* Of the user whose queue it is, with ORDER_FAIR. */
static int rank_of(const struct task_queue *queue)
{
    return ((const struct core_user *)queue)->fair.rank;
}

static bool ranks_before(
    const struct core *core, const struct task_queue *queue, const struct task_queue *other)
{
    core_rank_users(core);
    int rank = rank_of(queue), other_rank = rank_of(other);
    return rank != other_rank ? rank < other_rank : queue->first->id < other->first->id;
}

bool core_comes_before(const struct core *core, const struct task *task, const struct task *other)
{
    int priority = task->request.priority, other_priority = other->request.priority;
    return priority != other_priority ? priority > other_priority
                                      : ranks_before(core, task->queue, other->queue);
}

bool core_would_come_before(
    const struct core *core, const struct task *task, const struct task *waiting)
{
    int priority = task->request.priority, other_priority = waiting->request.priority;
    if (priority != other_priority)
        return priority > other_priority;
    if (core->settings.order == ORDER_FAIR && task->uid != waiting->uid) {
        int rank = core_fair_rank(core, task->uid), other_rank = core_fair_rank(core, waiting->uid);
        if (rank != other_rank)
            return rank < other_rank;
    }
    return task->id < waiting->id;
}

static bool is_ready(const struct core *core, const struct task *first)
{
    return first->request.need.kind != NEED_PENDING && core_can_be_served(core, first);
}

/* The first of the tasks that are ready and first in their queues. */
static struct task *first_ready(const struct core *core)
{
    const struct task_queue *queue;
    struct task *first = NULL;
    for (int i = 0; (queue = queue_at(core, i)); i++)
        if (queue->first && (!first || core_comes_before(core, queue->first, first)) &&
            is_ready(core, queue->first))
            first = queue->first;
    return first;
}

/* Most queues are empty most of the time: the search ends with the last task. */
struct task *core_first_task(const struct core *core)
{
    const struct task_queue *queue;
    struct task *first = NULL;
    int n = 0, left = core->n_queued;
    for (int i = 0; left > 0 && (queue = queue_at(core, i)); i++) {
        if (!queue->first)
            continue;
        n++;
        left -= queue->count;
        if (!first || core_comes_before(core, queue->first, first))
            first = queue->first;
    }
    struct task *ready = n > 1 && !is_ready(core, first) ? first_ready(core) : NULL;
    return ready ? ready : first;
}

static bool is_listed_before(const void *a, const void *b, const void *context)
{
    const struct task *one = *(const struct task *const *)a,
                      *other = *(const struct task *const *)b;
    return one->queue != other->queue && core_comes_before(context, one, other);
}

int core_list_waiting(const struct core *core, const struct task **ret_tasks, int most)
{
    const struct task_queue *queue;
    const struct task *head = core_head_of_queue(core);
    size_t n = 0;
    if (!head || most < 1)
        return 0;
    ret_tasks[0] = head;
    for (int i = 0; (queue = queue_at(core, i)); i++) {
        int seen = 0;
        for (const struct task *task = queue->first; task && seen < most; task = task->next, seen++)
            if (task != head)
                n = top_k_insert(&ret_tasks[1], n, (size_t)most - 1, sizeof *ret_tasks, &task,
                    is_listed_before, core);
    }
    return (int)n + 1;
}

/* How many tasks of another queue come before the task, as ranks are now. */
static int count_before(
    const struct core *core, const struct task_queue *queue, const struct task *task)
{
    int n = 0;
    for (int above = PRIORITY_URGENT; above > task->request.priority; above--)
        n += queue_count_of(queue, above);
    if (queue->first && ranks_before(core, queue, task->queue))
        n += queue_count_of(queue, task->request.priority);
    return n;
}

static int count_of_others(const struct core *core, const struct task *task)
{
    const struct task_queue *queue;
    int n = 0;
    for (int i = 0; (queue = queue_at(core, i)); i++)
        if (queue != task->queue)
            n += count_before(core, queue, task);
    return n;
}

/* Counted once for all tasks of a user and priority: a list of all tasks would else take time in
 * proportion to tasks times users. */
static int of_others_before(const struct core *core, const struct task *task)
{
    if (core->settings.order == ORDER_FIFO)
        return 0;
    struct core_user *user = (struct core_user *)task->queue;
    struct ahead_of_user *ahead = &user->ahead[task->request.priority - PRIORITY_LOW];
    if (ahead->change != core->users->change)
        *ahead = (struct ahead_of_user){core->users->change, count_of_others(core, task)};
    return ahead->n;
}

int core_ahead_of(const struct core *core, const struct task *task, int *ret_of_others)
{
    int n = queue_ahead_of(task);
    int others = task->state == TASK_QUEUED ? of_others_before(core, task) : 0;
    if (ret_of_others)
        *ret_of_others = others;
    return n + others;
}

/* Tasks are in the order of their ids: each goes to the end of its queue. */
void core_change_order(struct core *core, enum queue_order order)
{
    if (core->settings.order == order)
        return;
    for (int i = 0; i < core->n_tasks; i++)
        if (core->tasks[i]->state == TASK_QUEUED)
            queue_remove(core->tasks[i]);
    core->settings.order = order;
    core->users->change++;
    for (int i = 0; i < core->n_tasks; i++)
        if (core->tasks[i]->state == TASK_QUEUED)
            queue_push_in_order(core_queue_of(core, core->tasks[i]), core->tasks[i]);
}
