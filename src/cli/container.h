/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of podman or docker that starts a container as a part of a task. Pure. */
#ifndef COLLOC_CLI_CONTAINER_H
#define COLLOC_CLI_CONTAINER_H

#include <stddef.h>

#include "base/fault.h"

struct docker_task;

struct container_order {
    const char *image;
    const char *folder;               /* of the task: mounted under its own name, and entered */
    const char *gpus;                 /* labels, comma-separated: "0,2", "0:1"; "": none */
    const char *const *command;       /* in the container, ended by NULL; empty: the image's */
    const struct docker_task *docker; /* by docker, for this task; NULL: by podman */
    unsigned uid, gid;                /* of the processes in a container of docker */
};

/*
 * Makes the words. No shell reads any of them.
 *
 * ret_words: ended by NULL, for container_free
 *
 * Returns 0; -EINVAL with a fault: the image, the folder or the list of GPUs is none; or -ENOMEM.
 */
int container_words(const struct container_order *order, struct fault *fault, char ***ret_words);

/* Refuses a text that is no name of an image. Returns 0, or -EINVAL with a fault. */
int container_check_image(const char *image, struct fault *fault);

void container_free(char **words);

/*
 * Finds the container in a process's cgroup.
 *
 * cgroup: as /proc/PID/cgroup has it: "0::/system.slice/docker-4f2c....scope"
 * ret_id: its first 12 digits, as `docker ps` prints them; CONTAINER_ID_SIZE bytes
 *
 * Returns the program that runs containers of this form: "docker", "podman" or "containerd"; NULL:
 * it is in none. Users name cgroups below their logins (user.slice): there it is podman at most.
 */
enum { CONTAINER_ID_SIZE = 13 };
const char *container_find(const char *cgroup, char *ret_id);

#endif
