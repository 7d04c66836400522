/* SPDX-License-Identifier: Apache-2.0 */
/* The docker of this machine, as a task finds it. */
#ifndef COLLOC_CLI_DOCKER_RUN_H
#define COLLOC_CLI_DOCKER_RUN_H

#include <limits.h>
#include <stdbool.h>

#include "cli/command.h"
#include "exec/cgroup.h"

extern const struct command command_docker;

enum docker_driver { DOCKER_DRIVER_UNKNOWN, DOCKER_DRIVER_CGROUPFS, DOCKER_DRIVER_OTHER };

#define DOCKER_DRIVER_WORDS                                                                        \
    "docker's cgroup driver is not cgroupfs: the administrator can set \"exec-opts\": "            \
    "[\"native.cgroupdriver=cgroupfs\"] in /etc/docker/daemon.json"

/* Finds docker on PATH, passing over colloc's link of that name. */
bool docker_find(char program[PATH_MAX]);

/* Asks dockerd. Unknown: it does not answer. */
enum docker_driver docker_driver_of(const char *program);

/* Finds the task's cgroup below the root of cgroups. Returns false where the task has none. */
bool docker_find_parent(char ret_parent[CGROUP_PATH_SIZE]);

#endif
