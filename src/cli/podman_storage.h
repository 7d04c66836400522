/* SPDX-License-Identifier: Apache-2.0 */
/* What podman keeps of a container, to those who may read it. */
#ifndef COLLOC_CLI_PODMAN_STORAGE_H
#define COLLOC_CLI_PODMAN_STORAGE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/text.h"

enum { PODMAN_IMAGE_SIZE = 128 };

#define PODMAN_SEARCHES_US SECOND_US /* chosen: as for dockerd (docker_api.h) */

/*
 * Finds the image of a container in the storage of a user or, as root, of root. The user's home may
 * hang: a search takes half of the time that is left for all at most, so that others follow.
 *
 * uid:       of a process in the container. Another user's storage is read by root only, as that
 *            user
 * id:        digits of its id
 * left_us:   for all searches together, which starts with PODMAN_SEARCHES_US; less afterwards
 * ret_image: as it was started, "docker.io/lab/train:1"; PODMAN_IMAGE_SIZE bytes
 *
 * Returns 0 or -ENOENT.
 */
int podman_image_read(uid_t uid, const char *id, int64_t *left_us, char *ret_image);

/* Finds it in one file of the storage. Returns 0 or -ENOENT. */
int podman_image_parse(struct span file, const char *id, char *ret_image);

#endif
