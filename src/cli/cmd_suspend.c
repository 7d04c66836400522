/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc suspend`: takes running tasks off their GPUs. change.c sends the requests.
 *
 *     suspended    its GPU memory is in host memory, its GPUs are free
 *     paused       where the driver cannot do that: its processes stand still, its GPU memory stays
 */
#include "cli/change.h"

static int run(const struct invocation *invocation)
{
    return change_tasks(invocation, "suspend");
}

const struct command command_suspend = {
    .name = "suspend",
    .usage = "[OPTION...] ID...",
    .summary = "take running tasks off their GPUs",
    .description = "The GPU memory of the task is copied to host memory and its GPUs "
                   "are free for others; `colloc resume` puts it back and it continues "
                   "where it was. A task that the NVIDIA driver cannot suspend (MPS, "
                   "MIG) is paused: its processes stop, its GPU memory stays.",
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
