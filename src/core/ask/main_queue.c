/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the main queue.
 *
 * A queue is in the order of priority, then of age (queue.c). With ORDER_FIFO there is one. With
 * ORDER_FAIR each user has one, and the queues come in the order of keys:
 *
 *   1. the priority of the queue's first task;
 *   2. the fair rank of the user (ask/standing.c): less usage for each share comes first;
 *   3. the age of the queue's first task.
 *
 * Each placement changes the rank of its user, so the order is decided again for each head. A queue
 * is skipped while its first task cannot be served by the healthy GPUs, or waits for its estimate:
 * other users do not wait for that. With one user there is one queue, as with ORDER_FIFO.
 */
#include "core/ask/main_queue.h"

#include "core/ask/servable.h"
#include "core/ask/standing.h"
#include "core/questions.h"
#include "core/state/state.h"

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

bool core_ranks_before(
    const struct core *core, const struct task_queue *queue, const struct task_queue *other)
{
    return ranks_before(core, queue, other);
}

static bool comes_before(const struct core *core, const struct task *task, const struct task *other)
{
    int priority = task->request.priority, other_priority = other->request.priority;
    return priority != other_priority ? priority > other_priority
                                      : ranks_before(core, task->queue, other->queue);
}

bool core_comes_before(const struct core *core, const struct task *task, const struct task *other)
{
    return comes_before(core, task, other);
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
        if (queue->first && (!first || comes_before(core, queue->first, first)) &&
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
        if (!first || comes_before(core, queue->first, first))
            first = queue->first;
    }
    struct task *ready = n > 1 && !is_ready(core, first) ? first_ready(core) : NULL;
    return ready ? ready : first;
}
