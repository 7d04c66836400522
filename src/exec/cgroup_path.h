/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths of attempts' cgroups, from the text of files in /proc. Pure.
 *
 *     /sys/fs/cgroup/system.slice/collocd.service    delegated to collocd (Delegate=yes)
 *         daemon/              collocd and its shims (DelegateSubgroup=daemon)
 *         colloc/              the home of attempts; several collocd may share it
 *             1f0c9a77-12.1/   task 12, attempt 1; the first part is a hash of the state folder
 *
 *     /sys/fs/cgroup/colloc.slice    systemd's, for containers of attempts (exec/container_slice.h)
 *         colloc-1f0c9a77_12.1.slice/    those of task 12, attempt 1
 */
#ifndef COLLOC_EXEC_CGROUP_PATH_H
#define COLLOC_EXEC_CGROUP_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_HOME      "colloc"
#define CGROUP_SUBGROUP  "daemon"
#define CGROUP_SLICES    "colloc.slice"
#define CGROUP_PATH_SIZE 4096 /* PATH_MAX of Linux */

/* Finds where the cgroup v2 hierarchy is mounted. `mountinfo`: the text of /proc/self/mountinfo.
 * Returns false: nowhere, or the path does not fit into `size`. */
bool cgroup_parse_mount(const char *mountinfo, char *ret_path, size_t size);

/* Finds a process's cgroup (v2): "/", "/system.slice/...". `text`: of /proc/PID/cgroup. Returns
 * false: it has none, or the path does not fit. */
bool cgroup_parse_own(const char *text, char *ret_path, size_t size);

/*
 * Finds the folder below which the home is made.
 *
 * mount, own:     as parsed above.
 * ret_may_enable: true: controllers may be enabled for the children of that folder, since it holds
 *                 no process (or is the root, which may hold some).
 *
 * Returns false if the path does not fit.
 */
bool cgroup_find_base(
    const char *mount, const char *own, char *ret_path, size_t size, bool *ret_may_enable);

/* Writes the cgroup's path of an attempt. `folder`: `<state>/tasks/<ID>/<ATTEMPT>`. Returns false
 * if it does not fit. */
bool cgroup_of_attempt(const char *home, const char *folder, char *ret_path, size_t size);

/* Parses the name of a cgroup. Returns true, with the task and the attempt, when it belongs to an
 * attempt below `state_dir`. */
bool cgroup_parse_name(
    const char *name, const char *state_dir, uint64_t *ret_task, int *ret_attempt);

/*
 * Finds the attempt in whose cgroup a process is, or in one below it.
 *
 * own:  the process's cgroup, as cgroup_parse_own writes it.
 * home: that of the attempts, in the same form. A cgroup elsewhere does not count, whatever its
 *       name: systemd gives users cgroups in which they make others.
 *
 * Returns true, with the task and the attempt, when that attempt belongs to `state_dir`.
 */
bool cgroup_parse_attempt(
    const char *own, const char *home, const char *state_dir, uint64_t *ret_task, int *ret_attempt);

/*
 * Writes the name of the slice for an attempt's containers, which systemd has below CGROUP_SLICES.
 *
 * cgroup: the attempt's, absolute
 *
 * Returns false if it is none of an attempt, or does not fit.
 */
bool cgroup_slice_of(const char *cgroup, char *ret_name, size_t size);

/* Parses the name of such a slice. Returns true, with the task and the attempt, when it belongs to
 * an attempt below `state_dir`. */
bool cgroup_parse_slice_name(
    const char *name, const char *state_dir, uint64_t *ret_task, int *ret_attempt);

/*
 * Finds the attempt whose container a process is in.
 *
 * own: as cgroup_parse_own writes it; only root makes cgroups there
 *
 * Returns as cgroup_parse_attempt does.
 */
bool cgroup_parse_slice(
    const char *own, const char *state_dir, uint64_t *ret_task, int *ret_attempt);

/* Returns the value of `key` in a text of "KEY NUMBER" lines, such as cgroup.events; -1:
 * missing. */
int64_t cgroup_parse_value(const char *text, const char *key);

#endif
