/* SPDX-License-Identifier: Apache-2.0 */
/* What dockerd says of a container, to those who may ask it. */
#ifndef COLLOC_CLI_DOCKER_API_H
#define COLLOC_CLI_DOCKER_API_H

#include <sys/types.h>

#include "base/text.h"

enum { DOCKER_IMAGE_SIZE = 128, DOCKER_USER_SIZE = 33, DOCKER_PROJECT_SIZE = 64 };

struct docker_container {
    char image[DOCKER_IMAGE_SIZE]; /* as it was started: "lab/train:1" */
    char user[DOCKER_USER_SIZE];   /* whose home is mounted in it, or has the project; "": none */
    char project[DOCKER_PROJECT_SIZE]; /* of docker compose; "": none */
};

/*
 * Asks dockerd, a second at most.
 *
 * id: digits of its id
 *
 * Returns 0; -ENOENT: there is no such container; or another -errno: dockerd is not there, does not
 * answer, or this user may not ask it.
 */
int docker_container_read(const char *id, struct docker_container *ret_container);

/* Returns the process that listens at dockerd's socket; -1: there is none, or this user may not ask
 * it. */
pid_t docker_find_daemon(void);

/* Reads dockerd's answer, an HTTP response. Returns 0, -ENOENT or -EBADMSG. */
int docker_answer_parse(struct span answer, struct docker_container *ret_container);

#endif
