/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latest start of a task (decide/fifo_schedule.c) as others see it: has it come, and when would
 * the task have ended under first come, first served?
 */
#include "core/ask/latest_start.h"

#include "core/questions.h"
#include "core/state/state.h"

bool core_is_urgent(const struct core *core, const struct task *task)
{
    return task->latest_start_us && core->last_pass_us >= task->latest_start_us;
}

int64_t core_fifo_completion_us(const struct task *task)
{
    double expected_us = reading_assume(task->request.expect.time_us, 0);
    double limit_us = (double)(task->latest_start_us - task->fair_since_us) +
                      CORE_SLOWDOWN_MEAN * expected_us;
    return task->latest_start_us ? (int64_t)(limit_us / CORE_STRETCH_MAX) : 0;
}
