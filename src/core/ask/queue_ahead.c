/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many tasks come before a waiting one, for explanations and predictions: in its queue and,
 * with ORDER_FAIR, in those of the users who come before its own. A list of all tasks asks it for
 * each: what is the same for all tasks of a user and priority is counted once.
 */
#include "core/questions.h"

#include "base/top_k.h"
#include "core/ask/main_queue.h"
#include "core/ask/queue_head.h"
#include "core/state/state.h"

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
    for (int i = 0; (queue = core_main_queue(core, i)); i++) {
        int seen = 0;
        for (const struct task *task = queue->first; task && seen < most; task = task->next, seen++)
            if (task != head)
                n = top_k_insert(&ret_tasks[1], n, (size_t)most - 1, sizeof *ret_tasks, &task,
                    is_listed_before, core);
    }
    return (int)n + 1;
}

/* Counts the tasks of another queue that come before the task, as ranks are now. */
static void count_before(const struct core *core, const struct task_queue *queue,
    const struct task *task, struct ahead_of_user *ahead)
{
    int n = 0;
    for (int above = PRIORITY_URGENT; above > task->request.priority; above--)
        n += queue_count_of(queue, above);
    ahead->n_by_priority += n;
    ahead->n += n;
    if (queue->first && core_ranks_before(core, queue, task->queue))
        ahead->n += queue_count_of(queue, task->request.priority);
}

static struct ahead_of_user count_of_others(const struct core *core, const struct task *task)
{
    const struct task_queue *queue;
    struct ahead_of_user ahead = {.change = core->users->change};
    for (int i = 0; (queue = core_main_queue(core, i)); i++)
        if (queue != task->queue)
            count_before(core, queue, task, &ahead);
    return ahead;
}

/* Counted once for all tasks of a user and priority: a list of all tasks would else take time in
 * proportion to tasks times users. */
static struct ahead_of_user of_others_before(const struct core *core, const struct task *task)
{
    if (core->settings.order == ORDER_FIFO || task->state != TASK_QUEUED ||
        task->queue == &core->host_queue)
        return (struct ahead_of_user){0};
    struct core_user *user = (struct core_user *)task->queue;
    struct ahead_of_user *ahead = &user->ahead[task->request.priority - PRIORITY_LOW];
    if (ahead->change != core->users->change)
        *ahead = count_of_others(core, task);
    return *ahead;
}

int core_ahead_of(const struct core *core, const struct task *task, int *ret_of_others)
{
    int n = queue_ahead_of(task);
    int others = of_others_before(core, task).n;
    if (ret_of_others)
        *ret_of_others = others;
    return n + others;
}

int core_ahead_by_priority(const struct core *core, const struct task *task)
{
    return of_others_before(core, task).n_by_priority;
}
