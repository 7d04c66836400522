/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP and JSON over a Unix socket, server side: transport, routing and who is asking; what is
 * answered is the caller's. One thread, no thread of its own: the caller polls api_server_fd for
 * reading, and calls api_server_run then and whenever api_server_timeout_ms has passed.
 */
#ifndef COLLOC_API_SERVER_H
#define COLLOC_API_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"

struct api_server;
struct api_request;

struct api_route {
    const char *method; /* "GET" */
    const char *path;   /* "/v1/tasks/{id}/cancel": {id} stands for a decimal number above 0 */
    /*
     * Answers with one of api_reply_*, at once or later: until then the connection waits. It is
     * answered in any case when the server is destroyed. The request lives until it is answered. An
     * answer given later goes out with the next api_server_run.
     */
    void (*handle)(void *context, struct api_request *request);
};

struct api_server_options {
    const char *socket_path;
    mode_t socket_mode;             /* who may connect: 0666 or 0600 */
    const struct api_route *routes; /* ended by one without a method; borrowed */
    void *context;                  /* for the handlers */
    const char *version;            /* of the program, for the Colloc-Version header; borrowed */
    size_t body_max_bytes;
    size_t bytes_max;             /* of bodies and long answers under way, of all users together */
    int idle_timeout_s;           /* a client that says nothing for so long is let go */
    int connections_per_user_max; /* so that nobody can use them all up; root has no such limit */

    /* Is the user who connects known not to be in the user database? Never waits; what is learned
     * later goes to api_server_set_stranger. May be NULL: nobody is a stranger. */
    bool (*is_stranger)(void *context, uid_t uid);
};

/*
 * Binds and listens. A socket file that nobody listens on any more is replaced; -EADDRINUSE when
 * somebody does. 0 or -errno with words.
 */
int api_server_create(
    const struct api_server_options *options, struct fault *fault, struct api_server **ret_server);

/* Answers what still waits and what still comes with 503, closes and removes the socket. NULL is
 * fine. */
void api_server_destroy(struct api_server *server);

int api_server_fd(const struct api_server *server);
void api_server_run(struct api_server *server);
int64_t api_server_timeout_ms(struct api_server *server);

/* Counts the user's connections, as long as it has any, with those of all strangers (api/quota.h),
 * and closes them where that are too many. */
void api_server_set_stranger(struct api_server *server, uid_t uid, bool is_stranger);

/* ---- a request ---- */

struct api_peer {
    uid_t uid;
    gid_t gid;
    pid_t pid;
};

struct api_peer api_request_peer(const struct api_request *request);
uint64_t api_request_id(const struct api_request *request); /* the {id} of the path, or 0 */

/* The body as JSON, borrowed; NULL when there was none. What is no JSON has been answered with 400
 * already. */
const json_t *api_request_body(const struct api_request *request);

/* A query parameter, or NULL. */
const char *api_request_query(const struct api_request *request, const char *key);

/* Answers; takes over the reference to `body`. A NULL body (memory is out) answers 500. */
void api_reply(struct api_request *request, int status, json_t *body);

/* As above for JSON that is text already, written with these flags; takes over `text`. */
#define API_JSON_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))
void api_reply_text(struct api_request *request, int status, char *text);

/* Counts bytes of a long answer that is being made. False when the quota has none left: the request
 * has been answered with 503 then. */
bool api_request_hold(struct api_request *request, size_t bytes);

/* As api_reply_text for a text whose bytes api_request_hold has counted. */
void api_reply_held_text(struct api_request *request, int status, char *text);

/* {"error": {"code": .., "message": ..}}; the code follows from the status. */
void api_reply_error(struct api_request *request, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct api_header {
    const char *name, *value;
};

/* Bytes, copied, as of this type, with further headers (ended by one without a name; may be NULL).
 */
void api_reply_bytes(struct api_request *request, const char *type, const void *data, size_t size,
    const struct api_header *headers);

#endif
