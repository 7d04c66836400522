/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cgroup (v2) per attempt: the kernel's own list of the attempt's processes, which no process
 * leaves by a double fork, a new session or another environment. It is used to end an attempt
 * (cgroup.kill) and to tell whether the kernel killed one of its processes for want of memory
 * (memory.events). Limits are not set.
 *
 * collocd finds the home of cgroups; the shim makes the attempt's, the task's first process enters
 * it before it becomes the user, the shim removes it when the attempt has ended. Shims stay
 * outside. Where cgroups are not writable there is none, and processes are found by descent and by
 * their environment alone.
 */
#ifndef COLLOC_EXEC_CGROUP_H
#define COLLOC_EXEC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "exec/cgroup_path.h"

/*
 * Makes the home of attempts' cgroups, enables the memory controller for them where that is
 * possible, and tries with a child whether processes can enter. For the daemon, once, at start.
 *   ret_home: its absolute path, at least CGROUP_PATH_SIZE bytes
 *   ret_counts: memory.events will be there
 * Returns 0, or -errno with the reason in the fault: there are no cgroups for this daemon.
 */
int cgroup_open_home(char *ret_home, bool *ret_counts, struct fault *fault);

/* Moves the calling process into the cgroup, making that as needed. 0 or -errno. */
int cgroup_enter(const char *path);

/* Sends SIGKILL to all processes in it and below it, also to those that are just being made.
 * Returns how many were seen there, 0 also when there is no such cgroup, or -errno. */
int cgroup_kill(const char *path);

/* Freezes all processes in it and below it, or lets them go on; the kernel does it soon after. 0 or
 * -errno (-ENOENT: no such cgroup, or a kernel before 5.2). */
int cgroup_freeze(const char *path, bool is_frozen);

/*
 * Removes it with all below it, killing what is in it.
 *   limit_us: how long to wait for killed processes to be gone
 * Returns 0, also when there is none, or -EBUSY or another -errno: it is still there.
 */
int cgroup_remove(const char *path, int64_t limit_us);

/* How many of its processes the kernel has killed for want of memory, its own limit's or the
 * machine's; -1: not counted. */
int64_t cgroup_oom_kills(const char *path);

#endif
