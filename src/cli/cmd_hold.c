/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc hold`: keeps waiting tasks from starting, until `colloc release`. change.c sends the
 * requests.
 *
 *     colloc hold 12                   Task 12 PENDING (JobHeldUser)
 */
#include "cli/change.h"

static int run(const struct invocation *invocation)
{
    return change_tasks(invocation, "hold");
}

const struct command command_hold = {
    .name = "hold",
    .usage = "[OPTION...] [ID...]",
    .summary = "keep waiting tasks from starting",
    .description = "A held task keeps its place in the queue and does not start until `colloc "
                   "release`."
                   "\n\n" CHANGE_WORDS " Of a range or selection only waiting tasks are held.",
    COMMAND_OPTIONS(change_options),
    .operand = OPERAND_TASK,
    .min_operands = 0,
    .max_operands = -1,
    .run = run,
};
