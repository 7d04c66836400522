/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the processes of a node's jobs. */
#ifndef COLLOC_DAEMON_NODE_NODE_FENCE_H
#define COLLOC_DAEMON_NODE_NODE_FENCE_H

#include "base/fault.h"
#include "daemon/node/job_of_process.h"

/*
 * Ends the processes of all jobs of a node, unless a slurmd of the node runs. A process is skipped
 * when it cannot be read in time: call again. For a helper process.
 *
 * Returns how many processes were ended; -EEXIST: slurmd runs, none was ended; or another -errno
 * with a fault.
 */
int node_fence(const struct slurm_identity *identity, struct fault *fault);

#endif
