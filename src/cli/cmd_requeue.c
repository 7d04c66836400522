/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc requeue`: ends running tasks and puts them back into the queue. change.c sends the
 * requests.
 *
 *     colloc requeue 12                Task 12 COMPLETING (its processes are being ended)
 *
 * The task keeps its id, its output files and its place by the time of its submission. A script
 * calls it before its time limit ends it: trap 'colloc requeue $COLLOC_TASK_ID' USR1.
 */
#include "cli/change.h"

static int run(const struct invocation *invocation)
{
    return change_tasks(invocation, "requeue");
}

const struct command command_requeue = {
    .name = "requeue",
    .usage = "[OPTION...] [ID...]",
    .summary = "end running tasks and run them again",
    .description = "All processes of the task get SIGTERM and, after its grace time, SIGKILL; then "
                   "the task waits again, with its id and the place in the queue that it had. A "
                   "task that has ended is submitted again by `colloc rerun`."
                   "\n\n" CHANGE_WORDS " Of a range or selection only running tasks are requeued.",
    COMMAND_OPTIONS(change_options),
    .operand = OPERAND_TASK,
    .min_operands = 0,
    .max_operands = -1,
    .run = run,
};
