/* SPDX-License-Identifier: Apache-2.0 */
/* A task that its user waits for, at a terminal or in a pipeline: for `run`, `shell`, `attach`. */
#ifndef COLLOC_CLI_INTERACTIVE_H
#define COLLOC_CLI_INTERACTIVE_H

#include <jansson.h>
#include <stdint.h>

#include "cli/session.h"
#include "terminal/link.h"

/*
 * Lets a request's command run in a terminal of the task (src/terminal/relay.c).
 *
 * keep_us: how long the command continues without a terminal after a lost connection; 0: without
 *          limit
 *
 * Returns EXIT_OK; or EXIT_REFUSED, with a message printed.
 */
int interactive_add_terminal(json_t *request, int64_t keep_us);

/* Finds the link of a task that was submitted with one. `task`: a TASK object. Returns false if it
 * has none. */
bool interactive_link_of(const json_t *task, char name[LINK_NAME_SIZE]);

/*
 * Submits the request and waits for the task's turn, saying on standard error why it waits. Ctrl-C
 * cancels it.
 *
 * ret_id: the task's number
 *
 * Returns EXIT_OK once it has started, or has ended already; or an exit code, with a message.
 */
int interactive_submit(struct client *client, const json_t *request, int64_t *ret_id);

/* The two parts of it: submits the request; waits for the turn of what was submitted. */
int interactive_send(struct client *client, const json_t *request, int64_t *ret_id);
int interactive_wait_turn(struct client *client, int64_t id);

/* Waits for the start of a task that was submitted before. Ctrl-C ends only the waiting. Returns as
 * interactive_submit. */
int interactive_wait_start(struct client *client, int64_t id);

/* Asks whether the task has ended; waits for a daemon that restarts. Returns as session_call. */
int interactive_has_ended(struct client *client, int64_t id, bool *ret_has_ended);

/* Prints the output of a started task until it has ended. Ctrl-C cancels it, a second one ends this
 * program. Returns the task's exit code (task_end_exit_code). */
int interactive_follow(struct client *client, int64_t id);

/* Connects this terminal to the task's. Returns the task's exit code; EXIT_OK when the user
 * detaches; or another exit code, with a message. */
int interactive_attach(struct client *client, int64_t id, const char *link);

#endif
