/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of podman or docker that starts a container as a part of a task. Pure. */
#ifndef COLLOC_CLI_CONTAINER_H
#define COLLOC_CLI_CONTAINER_H

#include <stddef.h>

#include "base/fault.h"

struct docker_task;

struct container_order {
    const char *image;
    const char *name;                 /* for podman; NULL: podman chooses one */
    const char *folder;               /* of the task: mounted under its own name, and entered */
    const char *gpus;                 /* labels, comma-separated: "0,2", "0:1"; "": none */
    const char *const *command;       /* in the container, ended by NULL; empty: the image's */
    const struct docker_task *docker; /* by docker, for this task; NULL: by podman */
    unsigned uid, gid;                /* of the processes in a container of docker */
    const char *init;                 /* program for podman that passes signals on; NULL: none */
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

#endif
