/* SPDX-License-Identifier: Apache-2.0 */
/* The docker of this machine, as a task finds it. */
#ifndef COLLOC_CLI_DOCKER_RUN_H
#define COLLOC_CLI_DOCKER_RUN_H

#include <limits.h>
#include <stdbool.h>

#include "cli/command.h"
#include "exec/cgroup.h"

extern const struct command command_docker;

/* Can a container be a part of the task? */
enum docker_place {
    DOCKER_PLACE_TASK,     /* yes, by --cgroup-parent */
    DOCKER_PLACE_INSIDE,   /* it always is one: a user's dockerd (rootless) that the task started */
    DOCKER_PLACE_SILENT,   /* dockerd does not answer */
    DOCKER_PLACE_ROOTLESS, /* dockerd is a user's and outside the task, or has no cgroups */
    DOCKER_PLACE_NONE,     /* the task has no cgroup that root's dockerd could use */
};

/* Finds "docker" or "docker-compose" on PATH, passing over colloc's link of that name. */
bool docker_find(const char *name, char program[PATH_MAX]);

/*
 * Finds where dockerd has to put a container of this task: in the task's cgroup, or in a slice of
 * systemd that is the task's (exec/container_slice.h), by dockerd's cgroup driver. Asks dockerd.
 *
 * program:    docker
 * ret_parent: for --cgroup-parent; CGROUP_PATH_SIZE bytes; written for DOCKER_PLACE_TASK
 */
enum docker_place docker_find_place(const char *program, char *ret_parent);

/* Returns why a container can be no part of the task. */
const char *docker_place_text(enum docker_place place);

/*
 * Runs a program, and reads what it prints.
 *
 * argv:     its words, the first of which is its name
 * is_quiet: its errors are not shown
 * text:     `size` bytes with the NUL
 *
 * Returns whether it succeeded in half a minute and printed something.
 */
bool docker_read_output(
    const char *program, const char *const *argv, bool is_quiet, char *text, size_t size);

#endif
