/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the cgroups of attempts are: paths from what /proc says, without touching anything.
 *
 *     /sys/fs/cgroup/system.slice/collocd.service     delegated to collocd (Delegate=yes)
 *         daemon/                                     collocd and its shims (DelegateSubgroup=daemon)
 *         colloc/                                     the home of attempts, shared by all collocds below
 *             1f0c9a77-12.1/                          task 12, attempt 1; the first part names the state folder
 */
#ifndef COLLOC_EXEC_CGROUP_PATH_H
#define COLLOC_EXEC_CGROUP_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_HOME      "colloc"
#define CGROUP_SUBGROUP  "daemon"
#define CGROUP_PATH_SIZE 4096

/* Where the cgroup v2 hierarchy is mounted, from the text of /proc/self/mountinfo. False: nowhere,
 * or its path does not fit. */
bool cgroup_parse_mount(const char *mountinfo, char *ret_path, size_t size);

/* The cgroup (v2) of the process whose /proc/PID/cgroup this is: "/", "/system.slice/...". */
bool cgroup_parse_own(const char *text, char *ret_path, size_t size);

/*
 * The folder below which attempts get theirs.
 *   mount, own: as parsed above
 *   ret_may_enable: controllers may be enabled for the children of that folder, since no process is
 *                   in it (or it is the root, where that does not matter)
 * Returns false when the path does not fit.
 */
bool cgroup_find_base(
    const char *mount, const char *own, char *ret_path, size_t size, bool *ret_may_enable);

/* The cgroup of the attempt whose folder is `<state>/tasks/<ID>/<ATTEMPT>`. False: it does not fit. */
bool cgroup_of_attempt(const char *home, const char *folder, char *ret_path, size_t size);

/* Is a cgroup of this name one of the attempts under `<state_dir>`? Which? */
bool cgroup_parse_name(
    const char *name, const char *state_dir, uint64_t *ret_task, int *ret_attempt);

/* The value of `key` in a file of "KEY NUMBER" lines, as cgroup.events; -1: not there. */
int64_t cgroup_parse_value(const char *text, const char *key);

#endif
