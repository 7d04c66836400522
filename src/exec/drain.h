/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that share a GPU by MPS end best with their work on it finished: a kill in the middle
 * may harm the others.
 */
#ifndef COLLOC_EXEC_DRAIN_H
#define COLLOC_EXEC_DRAIN_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Before processes below `root` are signalled: has the MPS control daemon that `env` (ended by
 * NULL) names drop those of them that are its clients, acting as the user. Those that handle
 * SIGTERM, as one that writes a checkpoint does, are spared unless `all`. Without MPS it does
 * nothing; with a sick one it takes two seconds at most.
 */
void drain(const char *const *env, uid_t uid, gid_t gid, pid_t root, bool all);

#endif
