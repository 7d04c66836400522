/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc hold`: keeps waiting tasks from starting. */
#include "cli/change.h"

static int run(const struct invocation *invocation)
{
    return change_tasks(invocation, "hold");
}

const struct command command_hold = {
    .name = "hold",
    .usage = "[OPTION...] ID...",
    .summary = "keep waiting tasks from starting",
    .description = "A held task keeps its place in the queue and does not start until `colloc "
                   "release`.",
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
