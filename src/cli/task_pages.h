/* SPDX-License-Identifier: Apache-2.0 */
/* A list of tasks that the daemon sends in pages. */
#ifndef COLLOC_CLI_TASK_PAGES_H
#define COLLOC_CLI_TASK_PAGES_H

#include <jansson.h>

#include "api/client.h"

/*
 * Requests the pages after the first, and adds their tasks to it.
 *
 * path:  of the first page's request.
 * reply: the first page; any other reply is not changed.
 *
 * Returns as session_call; after an error `reply` is incomplete.
 */
int task_pages_follow(struct client *client, const char *path, json_t *reply);

#endif
