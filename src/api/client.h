/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client side of docs/protocol.md: requests to collocd over its Unix socket, all on one
 * connection; or to colloc-slurm on another machine over TCP, each signed and on a connection of
 * its own. A client is used by one thread at a time.
 */
#ifndef COLLOC_API_CLIENT_H
#define COLLOC_API_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/sha256.h"

struct client;

/*
 * Finds the daemon's socket; connects with the first request.
 *
 * socket_path: NULL: COLLOC_SOCKET, else the first of the protocol's places where a socket of root
 *              or of this user accepts connections
 *
 * Returns 0, or -errno with a fault; -ECONNREFUSED when no place has a daemon.
 */
int client_open(const char *socket_path, struct fault *fault, struct client **ret_client);

/* What signs requests to another machine. */
struct client_signer {
    void *context;

    /*
     * Signs a request.
     *
     * path:           with its query
     * body:           `size` bytes
     * ret_credential: a line of text that proves the request's user; the caller frees it
     * ret_key:        signs the answer (api/answer_code.h)
     *
     * Returns 0, or -errno with a fault.
     */
    int (*sign)(void *context, const char *method, const char *path, const char *body, size_t size,
        struct fault *fault, char **ret_credential, uint8_t ret_key[static SHA256_SIZE]);

    /* Releases the context, with the client. */
    void (*release)(void *context);
};

/*
 * Prepares requests to colloc-slurm on another machine; connects with each.
 *
 * address: "HOST:PORT"
 * signer:  copied; taken over, also on failure
 *
 * Returns 0, or -errno with a fault: -EINVAL for a text that is not an address.
 */
int client_open_remote(const char *address, const struct client_signer *signer, struct fault *fault,
    struct client **ret_client);

/* Closes the connection. Takes NULL. */
void client_close(struct client *client);
CLEANUP_DEFINE(struct client *, client_close)

/* Returns the path of the socket, or the address of the other machine. */
const char *client_socket(const struct client *client);

/* Returns true only when certainly no daemon listens: there is no such socket, or one that a daemon
 * has left behind. */
bool client_is_unserved(const struct client *client);

/* Tests whether a request has been answered yet: a daemon that stops answering after that is
 * probably restarting. */
bool client_was_answered(const struct client *client);

/*
 * Sends a request and waits for its answer.
 *
 * path:       starts with "/v1/"
 * body:       NULL: none
 * ret_status: HTTP status, also of errors
 * ret_reply:  the caller calls json_decref
 *
 * Returns 0; or -errno with a fault when the daemon was not reached or did not answer in JSON.
 */
int client_request(struct client *client, const char *method, const char *path, const json_t *body,
    struct fault *fault, int *ret_status, json_t **ret_reply);

/* Sets the fault to the message of an error reply. */
void client_error(int status, const json_t *reply, struct fault *fault);

/* A piece of a task's log. */
struct client_log {
    char *data; /* owned */
    size_t size;
    int64_t next_offset;
    bool ended;  /* the log is complete */
    bool merged; /* stdout and stderr are one file */
    int attempt;
    int64_t dropped; /* bytes between the requested offset and the piece that the daemon no longer
                      * keeps */
};

/*
 * Reads a piece of a log.
 *
 * path:    "/v1/tasks/ID/log?..."
 * ret_log: the caller frees ret_log->data
 *
 * Returns 0 with status 200 and the piece; 0 with another status and the daemon's message in the
 * fault; or -errno as client_request does.
 */
int client_read_log(struct client *client, const char *path, struct fault *fault, int *ret_status,
    struct client_log *ret_log);

#endif
