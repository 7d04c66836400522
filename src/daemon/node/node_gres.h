/* SPDX-License-Identifier: Apache-2.0 */
/* Whether gres.conf of this node names the GPUs as the agent does. */
#ifndef COLLOC_DAEMON_NODE_NODE_GRES_H
#define COLLOC_DAEMON_NODE_NODE_GRES_H

#include "base/fault.h"

/*
 * Compares the types of the node's GPUs in gres.conf with the numbers of their device files. Reads
 * the file: for the pool.
 *
 * node: Slurm's name of this node
 *
 * Returns 0: they are the same, or gres.conf cannot be read here; -EINVAL with the difference in
 * the fault; or -ENOMEM.
 */
int node_gres_check(const char *node, struct fault *fault);

#endif
