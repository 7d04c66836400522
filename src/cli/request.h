/* SPDX-License-Identifier: Apache-2.0 */
/* A task description as the body of `POST /v1/tasks`. */
#ifndef COLLOC_CLI_REQUEST_H
#define COLLOC_CLI_REQUEST_H

#include <jansson.h>

#include "taskfile/description.h"

/*
 * With this process's folder, environment and umask. `arguments` may be NULL. What the environment
 * holds that is no UTF-8 is left out, with a warning on stderr. 0 or -errno; the caller releases
 * *ret_request.
 */
int request_create(const struct task_description *task, const char *const *arguments,
    struct fault *fault, json_t **ret_request);

/* Adds the command line `words` (NULL-terminated, at least one) to a request, for people to read. */
void request_name_command(json_t *request, const char *const *words);

#endif
