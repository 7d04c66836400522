/* SPDX-License-Identifier: Apache-2.0 */
/* `scontrol`, as far as scripts use it in a job. */
#ifndef COLLOC_CLI_SLURM_CONTROL_H
#define COLLOC_CLI_SLURM_CONTROL_H

#include <stdbool.h>

/* Returns the command of colloc for one of scontrol: "hold" for "uhold". NULL: there is none. */
const char *slurm_control_command(const char *word);

/* Prints the one partition or the configuration, as far as programs read it: `what` is
 * "partition" or "config". Returns whether it is one of them. */
bool slurm_control_print(const char *what, bool is_one_line);

/*
 * Prints the names in a list of Slurm's, "n[01-03],m", a line each.
 *
 * list: NULL: that of the job, SLURM_JOB_NODELIST
 *
 * Returns an exit code.
 */
int slurm_control_print_hosts(const char *list);

#endif
