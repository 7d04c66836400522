/* SPDX-License-Identifier: Apache-2.0 */
/* `sinfo` in the form that programs read: of the one partition with the one node. */
#ifndef COLLOC_CLI_SLURM_PARTITION_H
#define COLLOC_CLI_SLURM_PARTITION_H

#include <stdbool.h>

/*
 * Runs sinfo where the command line has options of Slurm's. Without any it is `colloc gpus`.
 *
 * words: `count` arguments, NULL-terminated
 *
 * Returns whether it was run; then `ret_exit_code` is set.
 */
bool slurm_partition_run(const char *const *words, int count, int *ret_exit_code);

/* Prints the node as `scontrol show node` does. `name`: NULL: all there are, which is one. Returns
 * an exit code. */
int slurm_node_show(const char *name, bool is_one_line);

#endif
