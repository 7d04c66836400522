/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc cancel`: ends tasks. */
#include "cli/change.h"

static int run(const struct invocation *invocation)
{
    return change_tasks(invocation, "cancel");
}

const struct command command_cancel = {
    .name = "cancel",
    .usage = "[OPTION...] ID...",
    .summary = "end waiting or running tasks",
    .description =
        "ID is a task (12), a task of an array (12_7), several of them (12_[3-9]) or a "
        "whole array. A waiting task leaves the queue. All processes of a running task get "
        "SIGTERM and, after the task's grace time, SIGKILL. The command returns at "
        "once; `colloc wait` waits until the task has ended.",
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
