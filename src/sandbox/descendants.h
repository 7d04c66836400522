/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that descend from one, as /proc shows them. */
#ifndef COLLOC_SANDBOX_DESCENDANTS_H
#define COLLOC_SANDBOX_DESCENDANTS_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Sums the resident memory of all that descend from a process.
 *
 * ancestor: not counted itself
 *
 * Returns bytes; pages that several processes share count for each.
 */
int64_t descendants_memory(pid_t ancestor);

/*
 * Kills and reaps all that descend from this process, until there are none. This process must be a
 * child subreaper (PR_SET_CHILD_SUBREAPER), or orphans are missed.
 */
void descendants_kill(void);

#endif
