/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client half of docs/protocol.md: requests to collocd over its Unix socket, one connection
 * kept for all of them. For the CLI and for other programs that drive the daemon. Not for two
 * threads at once.
 */
#ifndef COLLOC_API_CLIENT_H
#define COLLOC_API_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

struct client;

/*
 * `socket_path` NULL: COLLOC_SOCKET, else the first of the protocol's places where a socket of root
 * or of this user answers. 0 or -errno (-ECONNREFUSED when nothing answers, with the places that
 * were tried in the fault).
 */
int client_open(const char *socket_path, struct fault *fault, struct client **ret_client);

/* Closes the connection. NULL is fine. */
void client_close(struct client *client);

/* The socket it talks to. */
const char *client_socket(const struct client *client);

/* True only when it is sure that no daemon listens there: no such socket, or one that a daemon has
 * left behind. */
bool client_nobody_listens(const struct client *client);

/* Whether any request was answered yet: a daemon that then falls silent is probably being
 * restarted. */
bool client_was_answered(const struct client *client);

/*
 * One request. `path` starts with "/v1/"; `body` may be NULL. Negative when the daemon could not be
 * reached or did not answer in JSON; otherwise 0 with the HTTP status (of any kind) and the reply,
 * which the caller releases.
 */
int client_request(struct client *client, const char *method, const char *path, const json_t *body,
    struct fault *fault, int *ret_status, json_t **ret_reply);

/* The words of an error reply. */
void client_error(int status, const json_t *reply, struct fault *fault);

/* A piece of a task's log. */
struct client_log {
    char *data; /* owned */
    size_t size;
    int64_t next_offset;
    bool ended;  /* nothing more will come */
    bool merged; /* the task's other stream goes to the same file */
    int attempt;
    int64_t dropped; /* bytes from the asked offset to the piece that the daemon no longer keeps */
};

/*
 * GET of a log path ("/v1/tasks/ID/log?..."). 0 with status 200 and the piece, or with another
 * status and the daemon's words in the fault; negative as client_request. The caller frees
 * ret_log->data.
 */
int client_read_log(struct client *client, const char *path, struct fault *fault, int *ret_status,
    struct client_log *ret_log);

#endif
