/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc resume`: lets suspended or paused tasks continue. */
#include "cli/change.h"

static int run(const struct invocation *invocation)
{
    return change_tasks(invocation, "resume");
}

const struct command command_resume = {
    .name = "resume",
    .usage = "[OPTION...] ID...",
    .summary = "let suspended or paused tasks continue",
    .description = "A suspended task is put on a GPU as soon as one has room for it, "
                   "before waiting tasks.",
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
