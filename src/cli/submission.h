/* SPDX-License-Identifier: Apache-2.0 */
/* The request to the daemon that a command line describes, for `submit` and `run`. */
#ifndef COLLOC_CLI_SUBMISSION_H
#define COLLOC_CLI_SUBMISSION_H

#include <jansson.h>

#include "cli/command.h"

/*
 * Makes the request from the task file and the options, and checks what can be checked here
 * (submit_check.h).
 *
 * ret_request: for the caller to release
 *
 * Returns EXIT_OK; or EXIT_USAGE, with a message printed.
 */
int submission_request(const struct invocation *invocation, json_t **ret_request);

#endif
