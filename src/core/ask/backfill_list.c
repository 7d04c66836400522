/* SPDX-License-Identifier: Apache-2.0 */
/* A user's tasks are tried in the order of the queue, or the shortest first; users take turns as
 * they do in the queue. */
#include "core/ask/backfill_list.h"

#include <math.h>

#include "base/top_k.h"
#include "core/ask/main_queue.h"
#include "core/ask/placement.h"
#include "core/ask/queue_head.h"
#include "core/ask/servable.h"
#include "core/kind_match.h"
#include "core/questions.h"

/* An unknown time counts as the longest. */
static double expected_us(const struct task *task)
{
    return reading_assume(task->request.expect.time_us, INFINITY);
}

/* How the tasks behind a head are ordered. */
struct backfill_order {
    const struct core *core;
    bool shortest_first;
};

/* The users in the order of their queues; of one user's tasks, the shortest first or the first of
 * the queue. */
static bool is_backfilled_sooner(const void *a, const void *b, const void *context)
{
    const struct backfill_order *order = context;
    const struct task *one = *(struct task *const *)a, *other = *(struct task *const *)b;
    if (one->queue != other->queue)
        return core_comes_before(order->core, one, other);
    return order->shortest_first && expected_us(one) < expected_us(other);
}

static int count_waiting_queues(const struct core *core)
{
    const struct task_queue *queue;
    int n = 0;
    for (int i = 0; (queue = core_main_queue(core, i)); i++)
        n += queue->first != NULL;
    return n;
}

int core_list_behind(
    const struct core *core, const struct task *head, struct task **ret_tasks, int most)
{
    const struct task_queue *queue;
    const struct backfill_order order = {core, core_task_policy(core, head)->longest_first};
    size_t n = 0;
    int queues = count_waiting_queues(core); /* that of `head`, at least */
    int depth = order.shortest_first ? CORE_QUEUE_DEPTH_MAX / (queues > 0 ? queues : 1) : most + 1;
    for (int i = 0; (queue = core_main_queue(core, i)); i++) {
        int seen = depth ? 0 : -1;
        for (struct task *task = queue->first; task && seen < depth; task = task->next, seen++) {
            if (task == head || task->request.need.kind == NEED_PENDING)
                continue;
            if (n == (size_t)most && !order.shortest_first &&
                !is_backfilled_sooner(&task, &ret_tasks[n - 1], &order))
                break; /* nor do those behind it in its queue come before the last of the list */
            n = top_k_insert(
                ret_tasks, n, (size_t)most, sizeof *ret_tasks, &task, is_backfilled_sooner, &order);
        }
    }
    return (int)n;
}

/* Does a task that waits hold up those behind it, in order? Not if it was run again as well, nor if
 * no GPUs can serve it. */
static bool holds_up(const struct core *core, const struct task *task)
{
    return task->state == TASK_QUEUED && !task->run->need_is_least &&
           core_can_be_served(core, task);
}

const struct task *core_find_obstacle(
    const struct core *core, const struct task *task, struct task *const *before, int n)
{
    for (int i = 0; i < n; i++)
        if (holds_up(core, before[i]) && core_shares_kinds(core, task, before[i]))
            return before[i];
    return NULL;
}

const struct task *core_held_up_by(
    const struct core *core, const struct task *task, const struct task *head)
{
    struct task *behind[CORE_BACKFILL_TRIES_MAX];
    int n = 0, at = 0;
    if (core_queue_goes_on(core, head))
        n = core_list_behind(core, head, behind, core_backfill_tries(core));
    while (at < n && behind[at] != task)
        at++;
    return core_find_obstacle(core, task, behind, at);
}
