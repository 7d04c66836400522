/* SPDX-License-Identifier: Apache-2.0 */
/* `squeue` and `sacct` in the forms that programs read. */
#ifndef COLLOC_CLI_SLURM_LIST_H
#define COLLOC_CLI_SLURM_LIST_H

#include <stdbool.h>

/*
 * Runs squeue or sacct where the command line asks for a form of Slurm's: a format, no header, job
 * ids, states, names, clusters. Any other is a command line of colloc's own command.
 *
 * words:         `count` arguments, NULL-terminated
 * ret_exit_code: set when it was run
 *
 * Returns whether it was run.
 */
bool slurm_list_run(const char *program, const char *const *words, int count, int *ret_exit_code);

/* Prints jobs as `scontrol show job` does: those of the ids. Returns an exit code. */
int slurm_list_show_jobs(const char *ids, bool is_one_line);

#endif
