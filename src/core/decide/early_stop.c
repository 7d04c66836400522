/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that is not among the best at its rung is stopped: its processes are ended as by a cancel,
 * and its state is STOPPED, with the rank that it had. The rank is in the decision, so the log says
 * why, whatever others report later.
 */
#include "core/decide/early_stop.h"

#include "core/decide/effects.h"
#include "core/decide/give_way.h"

int core_stop_if_losing(struct core *core, const struct task *task, int64_t now_us)
{
    if (!task || !task->run->stop.is_losing || task->ending || task->state == TASK_STARTING ||
        !task_state_has_attempt(task->state))
        return 0;
    struct event event = {
        .kind = EVENT_STOP, .time_us = now_us, .task = task->id, .stop = task->run->stop};
    int r = core_decide(core, &event);
    return r < 0 ? r : core_kill_task(core, task);
}
