/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/change.h"

static int run(const struct invocation *invocation)
{
    return change_tasks(invocation, "cancel");
}

const struct command command_cancel = {
    .name = "cancel",
    .usage = "[OPTION...] ID...",
    .summary = "end tasks, waiting or running",
    .description =
        "A waiting task leaves the queue. A running one gets SIGTERM, all its processes, and after its "
        "grace time SIGKILL. Returns at once; `colloc wait` waits until it has ended.",
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
