/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cgroup (v2) per attempt: the kernel's list of the attempt's processes, which no process leaves
 * by a double fork, a new session or another environment. It is used to end an attempt
 * (cgroup.kill), to find out whether the kernel killed one of its processes for lack of memory
 * (memory.events), and to limit its CPUs, main memory and processes, as far as the server has the
 * controllers for that.
 *
 * collocd finds the folder for all cgroups (the home). The shim makes the attempt's cgroup there,
 * the task's first process enters it before it becomes the user, and the shim removes it when the
 * attempt has ended. Shims, and the writers of their outputs (output_writer.h), stay outside. If
 * cgroups are not writable, processes are found only by their ancestry and their environment.
 */
#ifndef COLLOC_EXEC_CGROUP_H
#define COLLOC_EXEC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "base/reading.h"
#include "exec/cgroup_path.h"

/* The controllers that cgroups of attempts have. */
struct cgroup_controllers {
    bool cpu, memory, pids;
};

/*
 * Makes the home of the attempts' cgroups, enables controllers there if possible, and tests with a
 * child whether processes can enter. For the daemon, once, when it starts.
 *
 * ret_home: its absolute path; room for CGROUP_PATH_SIZE bytes.
 *
 * Returns 0; or -errno with the reason in the fault: this daemon uses no cgroups.
 */
int cgroup_open_home(char *ret_home, struct cgroup_controllers *ret_enabled, struct fault *fault);

/* Writes how /proc/PID/cgroup names a cgroup (CGROUP_PATH_SIZE bytes). `path`: absolute. Returns
 * false when it is not below the mounted hierarchy. */
bool cgroup_find_name(const char *path, char *ret_name);

/* Finds a process's cgroup (v2), as /proc names it (CGROUP_PATH_SIZE bytes). Returns false: it has
 * none, or the process has ended. */
bool cgroup_find_of(pid_t pid, char *ret_name);

/* Returns the controllers that the cgroup has itself. */
struct cgroup_controllers cgroup_available(const char *path);

/* The largest amounts for all processes of a cgroup together; 0: no limit. */
struct cgroup_limits {
    int64_t cpus;       /* in units of the time of one CPU */
    int64_t cpu_weight; /* its part of the CPUs where all are wanted, 1 to 10000; 0: the kernel's
                           100 */
    int64_t memory_bytes;
    int64_t processes; /* threads count, too */
};

/* Sets the limits for which the cgroup has a controller. Returns 0 or -errno. */
int cgroup_limit(const char *path, const struct cgroup_limits *limits);

/* The same for an attempt: beyond its limit of memory all of its processes are killed together.
 * Returns 0 or -errno. */
int cgroup_limit_attempt(const char *path, const struct cgroup_limits *limits);

/* Returns the limit of the cgroup's main memory in bytes; 0: it has none, or no controller. */
int64_t cgroup_memory_max(const char *path);

/*
 * Finds where cgroup v2 is mounted and the calling process's cgroup below that.
 *
 * ret_mount, ret_own: CGROUP_PATH_SIZE bytes each
 *
 * Returns false when no cgroup v2 hierarchy is mounted.
 */
bool cgroup_find_own(char *ret_mount, char *ret_own);

/* Moves the calling process into the cgroup, which is made, with these limits, if needed. With a
 * limit of memory, all of its processes are killed together when that runs out. `limits`: may be
 * NULL. Returns 0 or -errno. */
int cgroup_enter(const char *path, const struct cgroup_limits *limits);

/* Sends SIGKILL to all processes in the cgroup and below it, also to those that are being forked.
 * Returns how many there were, 0 if there is no such cgroup; or -errno. */
int cgroup_kill(const char *path);

/* Freezes all processes in it and below it, or lets them continue; the kernel does it soon after. 0
 * or -errno (-ENOENT: no such cgroup, or a kernel before 5.2). */
int cgroup_freeze(const char *path, bool is_frozen);

/*
 * Kills the processes in the cgroup, and removes it with all cgroups below it.
 *
 * limit_us: the longest wait for killed processes to end.
 *
 * Returns 0, also if there is no such cgroup; -EBUSY after the limit, or another -errno.
 */
int cgroup_remove(const char *path, int64_t limit_us);

/* Returns how many of its processes the kernel has killed for lack of memory, because of the
 * cgroup's limit or the machine's; not valid if cgroups do not count it. */
struct reading cgroup_oom_kills(const char *path);

#endif
