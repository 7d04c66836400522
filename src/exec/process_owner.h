/* SPDX-License-Identifier: Apache-2.0 */
/* To which attempt a process belongs. */
#ifndef COLLOC_EXEC_PROCESS_OWNER_H
#define COLLOC_EXEC_PROCESS_OWNER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The attempts among which an owner is searched: arrays of `count`, borrowed. */
struct attempt_roots {
    const pid_t *shims; /* or other processes that stand at the top */
    size_t count;

    /* For a search by cgroup. */
    const char *cgroup_home; /* of the attempts, as /proc names it; NULL: by descent only */
    const char *state_dir;   /* of the daemon that made the cgroups */
    const uint64_t *tasks;
    const int *attempts; /* the number of each task's attempt */
};

/*
 * Finds the attempt whose shim the process descends from, else the attempt in whose cgroup it is.
 *
 * Returns an index; -1: it belongs to none, or has ended.
 */
int process_owner_find(pid_t pid, const struct attempt_roots *roots);

#endif
