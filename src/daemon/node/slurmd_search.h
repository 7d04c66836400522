/* SPDX-License-Identifier: Apache-2.0 */
/* Finds slurmd among the processes of this machine. */
#ifndef COLLOC_DAEMON_NODE_SLURMD_SEARCH_H
#define COLLOC_DAEMON_NODE_SLURMD_SEARCH_H

#include <sys/types.h>

#include "base/fault.h"

/*
 * Finds a slurmd that serves this node. One that may serve another node counts as this node's,
 * unless it is known to serve another. May wait for such a process: in a helper process only.
 *
 * node: Slurm's name of this node
 *
 * Returns its process id; 0: there is none; or -errno with a fault: not known.
 */
pid_t slurmd_search(const char *node, struct fault *fault);

#endif
