/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of one command to the daemon. A function that returns another code than EXIT_OK has
 * printed what went wrong. */
#ifndef COLLOC_CLI_SESSION_H
#define COLLOC_CLI_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/client.h"
#include "cli/command.h"

enum { HTTP_UNAVAILABLE = 503 };

/* For a command under another program's name: the line that tools know for a daemon that does not
 * answer is printed before colloc's own message. `line`: kept, not copied. */
void session_set_unreachable_line(const char *line);

/*
 * Connects to the daemon. A command closes the session where its block ends:
 *
 *     CLEANUP(cleanup_client_close) struct client *client = NULL;
 *     int code = session_open(invocation, &client);
 *     return code == EXIT_OK ? move_task(invocation, client) : code;
 *
 * ret_client: for client_close
 *
 * Returns EXIT_OK or EXIT_UNREACHABLE.
 */
int session_open(const struct invocation *invocation, struct client **ret_client);

/*
 * Sends one request.
 *
 * body:      or NULL.
 * ret_reply: with EXIT_OK, for the caller to release.
 *
 * Returns EXIT_OK, EXIT_REFUSED or EXIT_UNREACHABLE.
 */
int session_call(struct client *client, const char *method, const char *path, const json_t *body,
    json_t **ret_reply);

/* Asks for a task by its id; otherwise as session_call. */
int session_get_task(struct client *client, int64_t id, json_t **ret_reply);

/*
 * Turns the outcome of client_request, `r` and the HTTP status, into an exit code. Prints errors.
 *
 * reply: released and set to NULL unless the code is EXIT_OK
 *
 * Returns as session_call.
 */
int session_exit_code(int r, int status, struct fault *fault, json_t **reply);

/* As session_call, for commands that run for hours: if the daemon has answered before, waits up to
 * a minute for its restart. */
int session_call_patiently(
    struct client *client, const char *method, const char *path, json_t **ret_reply);

/*
 * After a request that could not reach the daemon: should the caller repeat it? Pauses before it
 * returns true.
 *
 * give_up_us: kept between calls; 0 before the first, which prints that colloc waits.
 *
 * Returns false if the daemon never answered, or a minute has passed.
 */
bool session_may_come_back(const struct client *client, int64_t *give_up_us);

/* Parses a task id. Returns EXIT_OK or EXIT_USAGE. */
int parse_task_id(const char *text, int64_t *ret_id);

/* Finds a user by name or number. Returns 0, or -ENOENT without a message. */
int find_user(const char *text, int64_t *ret_uid);

/* Prints a warning if there is no such user: an empty list has another reason then. */
void warn_of_unknown_user(const char *text);

/* Writes the name of the calling user, or the number where it has none. Returns `name`. */
const char *own_user_name(char *name, size_t size);

/* Appends "&name=value" to a path ("?" instead of "&" for the first), with the value
 * percent-encoded. `size`: of `path`. */
void query_add(char *path, size_t size, const char *name, const char *value);

#endif
