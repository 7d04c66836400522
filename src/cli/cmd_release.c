/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/change.h"

static int run(const struct invocation *invocation)
{
    return change_tasks(invocation, "release");
}

const struct command command_release = {
    .name = "release",
    .usage = "[OPTION...] ID...",
    .summary = "let held tasks start",
    .description = "The task may start again, from the place it had.",
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
