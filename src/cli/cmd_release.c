/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc release`: lets held tasks start, from the place in the queue that they have kept.
 * change.c sends the requests.
 *
 *     colloc release 12                Task 12 PENDING
 */
#include "cli/change.h"

static int run(const struct invocation *invocation)
{
    return change_tasks(invocation, "release");
}

const struct command command_release = {
    .name = "release",
    .usage = "[OPTION...] [ID...]",
    .summary = "release held tasks",
    .description = "A released task can start again; it has kept its place in the queue."
                   "\n\n" CHANGE_WORDS " Of a range or selection only held tasks are released.",
    COMMAND_OPTIONS(change_options),
    .operand = OPERAND_TASK,
    .min_operands = 0,
    .max_operands = -1,
    .run = run,
};
