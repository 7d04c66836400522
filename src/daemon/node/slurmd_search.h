/* SPDX-License-Identifier: Apache-2.0 */
/* Finds slurmd among the processes of this machine. */
#ifndef COLLOC_DAEMON_NODE_SLURMD_SEARCH_H
#define COLLOC_DAEMON_NODE_SLURMD_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/fault.h"
#include "daemon/node/job_of_process.h"

/*
 * Finds a slurmd that serves this node. One that may serve another node counts as this node's,
 * unless it is known to serve another. May wait for such a process: in a helper process only.
 *
 * Returns its process id; 0: there is none; or -errno with a fault: not known.
 */
pid_t slurmd_search(const struct slurm_identity *identity, struct fault *fault);

/*
 * Finds an option of slurmd in the text of /proc/PID/cmdline: "-N n1", "-Nn1", "-DN n1".
 *
 * Returns its value; NULL: it is not given.
 */
const char *slurmd_find_option(const char *words, size_t size, char option);

/*
 * Reads ClusterName from the text of slurm.conf. Files that it includes are not read.
 *
 * Returns false when there is none, or it is longer than `size`.
 */
bool slurm_conf_cluster(const char *text, char *ret_name, size_t size);

#endif
