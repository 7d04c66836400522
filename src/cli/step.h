/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a task: the processes that `srun` starts in a script (`colloc run --step`). */
#ifndef COLLOC_CLI_STEP_H
#define COLLOC_CLI_STEP_H

#include "cli/command.h"

/*
 * Runs the command in the environment of this task: once, in place of this process; or as many
 * times as --ntasks says (srun: or SLURM_NTASKS of the task), beside each other.
 *
 * Returns the exit code: the highest of all processes.
 */
int step_run(const struct invocation *invocation);

/*
 * How many processes Slurm's options of the command line ask for.
 *
 * Returns the number, or 0 with a fault.
 */
int step_count_tasks(const struct invocation *invocation, struct fault *fault);

#endif
