/* SPDX-License-Identifier: Apache-2.0 */
/* The container that a process is in, by its cgroup. Pure. */
#ifndef COLLOC_BASE_CONTAINER_CGROUP_H
#define COLLOC_BASE_CONTAINER_CGROUP_H

enum { CONTAINER_ID_SIZE = 13 };

/*
 * Finds the container in a process's cgroup.
 *
 * cgroup: as /proc/PID/cgroup has it: "0::/system.slice/docker-4f2c....scope"
 * ret_id: its first 12 digits, as `docker ps` prints them; CONTAINER_ID_SIZE bytes
 *
 * Returns the program that runs containers of this form: "docker", "podman" or "containerd"; NULL:
 * it is in none. Users name cgroups below their logins (user.slice): there it is podman at most.
 */
const char *container_find(const char *cgroup, char *ret_id);

#endif
