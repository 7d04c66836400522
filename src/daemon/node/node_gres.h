/* SPDX-License-Identifier: Apache-2.0 */
/* Whether gres.conf of this node names the GPUs as the agent does. */
#ifndef COLLOC_DAEMON_NODE_NODE_GRES_H
#define COLLOC_DAEMON_NODE_NODE_GRES_H

#include <stdint.h>

#include "base/fault.h"

/*
 * Compares the types of the node's GPUs in gres.conf with the numbers of their device files. Reads
 * the file: for the pool.
 *
 * node:        Slurm's name of this node
 * ret_numbers: a bit for each of these numbers; 0: not known
 *
 * Returns 0: they are the same, or gres.conf cannot be read here; -EINVAL with the difference in
 * the fault; or -ENOMEM.
 */
int node_gres_check(const char *node, struct fault *fault, uint64_t *ret_numbers);

/*
 * The numbers of the GPUs that Slurm counts by their place among the node's, as in SLURM_JOB_GPUS
 * (measured with 22.05): 0 is the one with the lowest number.
 *
 * places:  a bit for each
 * numbers: those of the node's GPUs; 0: not known, then they are the places
 *
 * Returns a bit for each.
 */
uint64_t node_gres_numbers(uint64_t places, uint64_t numbers);

#endif
