/* SPDX-License-Identifier: Apache-2.0 */
/* External processes (of no task) on GPUs, as text. */
#ifndef COLLOC_CLI_EXTERNAL_H
#define COLLOC_CLI_EXTERNAL_H

#include <jansson.h>

enum { EXTERNAL_TEXT_SIZE = 384 };

/*
 * Adds members to each external process in a reply of GET /v1/gpus: `user`, the name of its
 * user, `command`, its command line if /proc shows it to this user, and `container`, such as "docker
 * container 4f2c1ab83c1d". Each is null if unknown. Of podman's containers also `image`, where
 * this user may read its storage. Of docker's also `image`, `compose_project`, and `files_of`, the
 * user whose home is mounted or has the project, where dockerd says so to this user.
 */
void external_name(json_t *reply);

/* Writes "ada: python3 train.py (pid 1515) 32.2 GiB, 3:12:34 old", or "pid 1515 (ended)". Returns
 * `text`. */
const char *external_text(const json_t *process, char text[EXTERNAL_TEXT_SIZE]);

#endif
