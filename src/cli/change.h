/* SPDX-License-Identifier: Apache-2.0 */
/* What cancel, hold and release share. */
#ifndef COLLOC_CLI_CHANGE_H
#define COLLOC_CLI_CHANGE_H

#include <jansson.h>

#include "cli/command.h"

/* The options by which tasks are selected instead of by their ids. */
enum { CHANGE_USER, CHANGE_MINE, CHANGE_NAME, CHANGE_STATE, CHANGE_OPTIONS };
extern const struct option_spec change_options[CHANGE_OPTIONS];

/* How to select, for help. */
#define CHANGE_WORDS                                                                               \
    "ID is a task (12), several (12-40), a task of an array (12_7), several of them (12_[3-9]) "   \
    "or a whole array. --user, --mine, --name and --state select tasks that have not ended; "      \
    "those that match all given options are changed."

/*
 * Sends POST /v1/tasks/ID/VERB for each operand, and prints "Task 12 STATE" for each. A refusal
 * does not stop the others. A command with change_options also changes what these select.
 *
 * verb: "cancel", "requeue", "hold", "release", "suspend", "resume" or "profile".
 *
 * Returns EXIT_OK, or the exit code of the first operand that failed.
 */
int change_tasks(const struct invocation *invocation, const char *verb);

/* The same with a body (NULL: none), and details of the change that are printed for each task; "":
 * none. */
int change_tasks_with(
    const struct invocation *invocation, const char *verb, const json_t *body, const char *details);

#endif
