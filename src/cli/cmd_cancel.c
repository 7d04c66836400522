/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc cancel`: ends tasks. change.c sends the requests.
 *
 *     colloc cancel 12 14_[3-9]        a task, and seven of an array
 *     colloc cancel --user=ada         all tasks of a user
 *
 * It does not wait: the processes get the task's grace time after SIGTERM.
 */
#include "cli/change.h"

static int run(const struct invocation *invocation)
{
    return change_tasks(invocation, "cancel");
}

const struct command command_cancel = {
    .name = "cancel",
    .usage = "[OPTION...] [ID...]",
    .summary = "end waiting or running tasks",
    .description = "A waiting task leaves the queue. All processes of a running task get "
                   "SIGTERM and, after the task's grace time, SIGKILL. The command returns at "
                   "once; `colloc wait` waits until the task has ended."
                   "\n\n" CHANGE_WORDS,
    COMMAND_OPTIONS(change_options),
    .operand = OPERAND_TASK,
    .min_operands = 0,
    .max_operands = -1,
    .run = run,
};
