/* SPDX-License-Identifier: Apache-2.0 */
/* What cancel, hold and release share. */
#ifndef COLLOC_CLI_CHANGE_H
#define COLLOC_CLI_CHANGE_H

#include "cli/command.h"

/*
 * Sends POST /v1/tasks/ID/VERB for each operand, and prints "Task 12 STATE" for each. A refusal
 * does not stop the others.
 *
 * `verb`: "cancel", "hold" or "release".
 *
 * Returns EXIT_OK, or the exit code of the first operand that failed.
 */
int change_tasks(const struct invocation *invocation, const char *verb);

#endif
