/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions (session.h) of one request. */
#ifndef COLLOC_CLI_SESSION_ONCE_H
#define COLLOC_CLI_SESSION_ONCE_H

#include <jansson.h>

#include "cli/command.h"

/*
 * Connects, sends one GET (for a list of tasks: of all its pages) and closes.
 *
 * ret_reply: with EXIT_OK, for the caller to release; NULL otherwise.
 *
 * Returns as session_call.
 */
int session_get(const struct invocation *invocation, const char *path, json_t **ret_reply);

/*
 * Connects, sends one POST and closes.
 *
 * body: released, also on an error; NULL: none.
 *
 * Returns as session_call.
 */
int session_post(
    const struct invocation *invocation, const char *path, json_t *body, json_t **ret_reply);

#endif
