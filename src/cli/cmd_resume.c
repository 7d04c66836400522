/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc resume`: lets suspended or paused tasks continue. change.c sends the requests.
 *
 * It returns at once. A suspended task waits for a GPU with enough free memory, before the tasks of
 * the queue; a paused one still has its GPU memory, and continues there.
 */
#include "cli/change.h"

static int run(const struct invocation *invocation)
{
    return change_tasks(invocation, "resume");
}

const struct command command_resume = {
    .name = "resume",
    .usage = "[OPTION...] ID...",
    .summary = "let suspended or paused tasks continue",
    .description = "A suspended task continues as soon as a GPU has enough free memory for "
                   "it, before waiting tasks.",
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
