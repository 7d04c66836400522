/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two settings keep the whole main queue from starting tasks. Both are rules of RAD-RM, the
 * resource manager of the dissertation, and off by default:
 *
 *   recovery: stop-queue   No task of the queue starts while a task that ran out of GPU memory
 *                          waits for idle GPUs (state/recovery_need.c). A recovering task that
 *                          the healthy GPUs cannot serve stops nothing: the queue would wait for
 *                          ever.
 *   decision-delay: 30s    A decision is made 30 s after the last start, for idle GPUs, and 30 s
 *                          later for all others: what started last shows its memory and activity
 *                          first.
 *
 * Example of the second: task 1 starts at 0:00. Task 2, submitted at 0:10, may start on an idle GPU
 * from 0:40 on, 30 s after its submission, and beside task 1 from 1:10 on.
 *
 * Neither keeps back recovering tasks, tasks that need no GPU, suspended tasks, and users with a
 * reservation.
 */
#include "core/ask/queue_pause.h"

#include "base/clock.h"
#include "core/ask/queue_head.h"
#include "core/ask/servable.h"

const struct task *core_queue_stopper(const struct core *core)
{
    if (core->settings.recovery != RECOVERY_STOP_QUEUE)
        return NULL;
    for (const struct task *task = core->recovery_queue.first; task; task = task->next)
        if (core_can_be_served(core, task))
            return task;
    return NULL;
}

struct decision_times core_decision_times(const struct core *core, const struct task *head)
{
    int64_t delay_us = core->settings.decision_delay_us;
    int64_t since_us = head->queued_us > core->last_start_us ? head->queued_us
                                                             : core->last_start_us;
    if (delay_us == 0)
        return (struct decision_times){0, 0};
    return (struct decision_times){since_us + delay_us, since_us + 2 * delay_us};
}

int64_t core_decision_deadline_us(const struct core *core)
{
    const struct task *head = core->settings.decision_delay_us ? core_head_of_queue(core) : NULL;
    if (!head)
        return TIME_NEVER;
    struct decision_times times = core_decision_times(core, head);
    if (times.idle_us > core->last_pass_us)
        return times.idle_us;
    return times.other_us > core->last_pass_us ? times.other_us : TIME_NEVER;
}
