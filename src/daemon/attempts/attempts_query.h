/* SPDX-License-Identifier: Apache-2.0 */
/* What other parts may know of the attempts that live now. */
#ifndef COLLOC_DAEMON_ATTEMPTS_ATTEMPTS_QUERY_H
#define COLLOC_DAEMON_ATTEMPTS_ATTEMPTS_QUERY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attempts;

/* Returns what the machine lacks for the task's start; NULL: its start is not deferred. */
const char *attempts_why_deferred(const struct attempts *attempts, uint64_t task);

/* Returns whether the task has a shim that is watched. */
bool attempts_is_watched(const struct attempts *attempts, uint64_t task);

/* Writes the path of the cgroup of the task's attempt. Returns false when it has none. */
bool attempts_find_cgroup(const struct attempts *attempts, uint64_t task, char *path, size_t size);

/* Returns the home of the attempts' cgroups as /proc/PID/cgroup names it; NULL: there is none. */
const char *attempts_cgroup_home(const struct attempts *attempts);

/* Returns the pid of the task's shim; 0: none is watched. */
pid_t attempts_find_shim(const struct attempts *attempts, uint64_t task);

/* Sends the task the signal of its --signal. Returns the time that it may take for it, in
 * microseconds; 0: it does not handle the signal. */
int64_t attempts_warn(const struct attempts *attempts, uint64_t task);

#endif
