/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The systemd slice of an attempt's containers.
 *
 * dockerd with the cgroup driver "systemd", its default, puts a container into a slice of systemd,
 * and no slice can be below a cgroup that systemd has delegated, as the attempts' are. So an
 * attempt has two cgroups. The second one is made by systemd when the attempt's first container
 * starts (cli/cmd_docker.c names it):
 *
 *     /sys/fs/cgroup/system.slice/collocd.service/colloc/1f0c9a77-12.1    the attempt
 *     /sys/fs/cgroup/colloc.slice/colloc-1f0c9a77_12.1.slice              its containers
 *         docker-5e0b....scope
 *
 * What is done to the attempt's cgroup is done to its slice. Only root reaches either.
 */
#ifndef COLLOC_EXEC_CONTAINER_SLICE_H
#define COLLOC_EXEC_CONTAINER_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/cgroup.h"

/* Finds the folder of all slices (CGROUP_PATH_SIZE bytes). It exists once there was one. Returns
 * false where no cgroup v2 hierarchy is mounted. */
bool container_slice_find_home(char *ret_home);

/*
 * Finds the slice of an attempt's containers.
 *
 * cgroup:   of the attempt, absolute
 * ret_path: of the slice's cgroup; CGROUP_PATH_SIZE bytes
 *
 * Returns false where the attempt has none: it has started no container in it.
 */
bool container_slice_find(const char *cgroup, char *ret_path);

/* Limits a slice as the attempt's cgroup is limited: at once, and at systemd, which would otherwise
 * reset it. Returns 0 or -errno. */
int container_slice_limit(const char *path, const struct cgroup_limits *limits);

/*
 * Kills the processes in a slice, and has systemd forget it. Waits for their end for a few seconds
 * at most.
 *
 * Returns how many processes there were, or -errno: -EBUSY, some are still there.
 */
int container_slice_end(const char *path);

#endif
