/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of the main queue: the task that is placed next. Mostly it is the oldest of the queue
 * that comes first (ask/main_queue.c). Three things make another one the head:
 *
 *     policy      a policy that takes the longest first, with backfill: long tasks start early,
 *                 short ones fill the gaps
 *     preemption  the task of the smallest rank, or one whose latest start has come
 *     look-ahead  the plan that the policy has chosen (queue_plan.h)
 *
 * None of them may starve the oldest: once CORE_PASSED_MAX later tasks have started before it, it
 * is the head.
 *
 * A head may wait for hours. Where it is not known until when, all GPUs are kept for it: any may be
 * the first to admit it. Not so a head that has had its turn: it was started, its memory did not
 * fit, and it was run again (pass/memory_answer.c). It waits as a task does that ran out of memory:
 * some GPUs are kept for it, and the queue goes on with the others. An example, nothing known:
 *
 *     GPU 0: task 1, 24 of 40 GiB      task 3 began on GPU 0, and wanted 30 GiB: it is run again
 *     GPU 1: task 2, 12 GiB            task 4 has not been started yet
 *
 *     Kept for task 3 is GPU 0 or GPU 1; task 4 starts on the other one. Task 5 may follow it
 *     there, but if task 4 has to wait, so has task 5.
 */
#include "core/ask/queue_head.h"

#include "core/ask/latest_start.h"
#include "core/ask/main_queue.h"
#include "core/ask/servable.h"
#include "core/questions.h"
#include "core/state/state.h"

int64_t core_rank(const struct core *core, const struct task *task, int64_t now_us)
{
    const struct policy *policy = core_task_policy(core, task);
    return policy->rank ? policy->rank(task, now_us) : 0;
}

bool core_is_ranked_before(
    const struct core *core, const struct task *a, const struct task *b, int64_t now_us)
{
    if (a->request.priority != b->request.priority)
        return a->request.priority > b->request.priority;
    return core_rank(core, a, now_us) < core_rank(core, b, now_us);
}

bool core_is_resumed_before(
    const struct core *core, const struct task *task, const struct task *head, int64_t now_us)
{
    return !head || !core_is_ranked_before(core, head, task, now_us);
}

/* A task that can never be served must not pass tasks submitted earlier, nor one of a lower class
 * those of a higher. */
static bool may_be_head(const struct core *core, const struct task *task)
{
    return task->request.priority == task->queue->first->request.priority &&
           task->request.need.kind != NEED_PENDING && core_task_policy(core, task)->longest_first &&
           core_can_be_served(core, task);
}

static bool comes_before(const struct core *core, const struct task *a, const struct task *b)
{
    bool is_urgent = core_is_urgent(core, a);
    if (core->plan.order)
        return queue_plan_is_before(&core->plan, a, b);
    if (is_urgent != core_is_urgent(core, b))
        return is_urgent;
    if (is_urgent)
        return a->latest_start_us < b->latest_start_us;
    return core_rank(core, a, 0) < core_rank(core, b, 0);
}

/* With preemption: the task of the smallest rank; of equal ones the oldest. The rank of a task
 * without an attempt does not depend on the time. */
static struct task *first_by_rank(const struct core *core)
{
    struct task *head = core_first_task(core), *task = head;
    if (head->passed_count >= CORE_PASSED_MAX)
        return head;
    for (int n = 0; task && n < CORE_QUEUE_DEPTH_MAX; task = task->next, n++)
        if (may_be_head(core, task) && comes_before(core, task, head))
            head = task;
    return head;
}

/* `head`: of known time. */
static bool takes_longer(const struct task *task, const struct task *head)
{
    const struct reading *time_us = &task->request.expect.time_us;
    return time_us->valid && time_us->value > head->request.expect.time_us.value;
}

/*
 * Of the queue that comes first (main_queue.c): its oldest task. With a policy that takes the
 * longest first, and backfill, the task that takes longest is the head: long tasks start early,
 * short ones fill the gaps. But the oldest task is the head if its time is not known, or
 * CORE_PASSED_MAX later tasks have started before it. Of equally long tasks the oldest is. (No task
 * behind the oldest was passed by more tasks than it.)
 */
struct task *core_head_of_queue(const struct core *core)
{
    struct task *head = core_first_task(core), *task = head;
    if (!head || !core_task_policy(core, head)->longest_first)
        return head;
    if (core->settings.preempt && core_task_policy(core, head)->rank)
        return first_by_rank(core);
    if (!core->settings.backfill || !head->request.expect.time_us.valid ||
        head->passed_count >= CORE_PASSED_MAX)
        return head;
    for (int n = 0; task && n < CORE_QUEUE_DEPTH_MAX; task = task->next, n++)
        if (takes_longer(task, head) && may_be_head(core, task))
            head = task;
    return head;
}

bool core_queue_goes_on(const struct core *core, const struct task *head)
{
    return head->run->need_is_least && core->view.reservation_start_us == START_UNKNOWN &&
           !core_task_policy(core, head)->longest_first;
}
