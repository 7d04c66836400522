/* SPDX-License-Identifier: Apache-2.0 */
/* What podman keeps of a container, to those who may read it. */
#ifndef COLLOC_CLI_PODMAN_STORAGE_H
#define COLLOC_CLI_PODMAN_STORAGE_H

#include <sys/types.h>

#include "base/text.h"

enum { PODMAN_IMAGE_SIZE = 128 };

/*
 * Finds the image of a container in the storage of a user or, as root, of root. Takes a second at
 * most, also where the user's home hangs.
 *
 * uid:       of a process in the container. Another user's storage is read by root only, as that
 *            user
 * id:        digits of its id
 * ret_image: as it was started, "docker.io/lab/train:1"; PODMAN_IMAGE_SIZE bytes
 *
 * Returns 0 or -ENOENT.
 */
int podman_image_read(uid_t uid, const char *id, char *ret_image);

/* Finds it in one file of the storage. Returns 0 or -ENOENT. */
int podman_image_parse(struct span file, const char *id, char *ret_image);

#endif
