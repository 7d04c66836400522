/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP and JSON over a Unix socket, server side: transport, routing, peers and quotas. Handlers of
 * the caller answer the requests. The server has no thread: the caller polls api_server_fd for
 * reading, and calls api_server_run when it is readable or api_server_timeout_ms has passed.
 */
#ifndef COLLOC_API_SERVER_H
#define COLLOC_API_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "base/sha256.h"

struct api_server;
struct api_request;

struct api_route {
    const char *method; /* "GET" */
    const char *path;   /* "/v1/tasks/{id}/cancel": {id} matches a decimal number above 0; {name}
                           matches any text of at least one byte without '/' */
    /*
     * Answers with one of api_reply_*, at once or later; until then the request is suspended and
     * stays valid. A later answer is sent by the next api_server_run. When the server is destroyed,
     * requests without an answer get 503.
     */
    void (*handle)(void *context, struct api_request *request);
};

struct api_header {
    const char *name, *value;
};

struct api_peer {
    uid_t uid;
    gid_t gid;
    pid_t pid;
};

struct api_server_options {
    /* A TCP socket that listens already, taken over; 0: the Unix socket of `socket_path`. The
     * kernel does not report the user of a TCP peer: `admit` has to identify it. */
    int listen_fd;
    const char *socket_path;
    mode_t socket_mode;             /* of the socket file: 0666 or 0600 */
    const struct api_route *routes; /* ended by one without a method; borrowed */
    void *context;                  /* for the handlers */
    const char *version;            /* of the program, for the Colloc-Version header; borrowed */
    size_t body_max_bytes;
    size_t bytes_max;             /* of pending bodies and long answers, of all users together */
    int idle_timeout_s;           /* a connection without traffic is closed after it */
    int connections_per_user_max; /* root has no such limit */
    bool proves_users; /* over TCP: a connection is unproven until `admit` or api_request_admit has
                        * named its user, and may lose its place (api/unproven.h); false: they
                        * count as those of one user */

    const struct api_header *headers; /* sent with every answer; ended by one without a name; or
                                       * NULL */

    /*
     * Decides whether the handler may answer the request. Called before the handler; NULL: it
     * always may.
     *
     * ret_peer: the user that sent the request, if the kernel reports it; may be changed: with
     *           proves_users the connection counts for that user from then on
     *
     * Returns false when the handler must not be called: it has refused the request, which is
     * answered then, or will call api_request_admit or answer later.
     */
    bool (*admit)(void *server_data, struct api_request *request, struct api_peer *ret_peer);

    /* A request that `admit` has left unanswered is answered by the server, because its connection
     * loses its place: it must not be touched any more. NULL: `admit` leaves none. */
    void (*forget)(void *server_data, struct api_request *request);
    void *server_data;

    /* Is it known that the user is not in the user database? Must not block: a result that comes
     * later is passed to api_server_set_unlisted. NULL: all users count as listed. */
    bool (*is_unlisted)(void *context, uid_t uid);
};

/*
 * Binds and listens. A socket file that no process serves any more is replaced.
 *
 * options: copied; its pointers stay borrowed until api_server_destroy
 *
 * Returns 0, or -errno with a fault; -EADDRINUSE when another process serves the socket.
 */
int api_server_create(
    const struct api_server_options *options, struct fault *fault, struct api_server **ret_server);

/* Answers pending requests with 503, closes all connections and removes the socket. Takes NULL. */
void api_server_destroy(struct api_server *server);

/* Returns the descriptor to poll for reading. */
int api_server_fd(const struct api_server *server);
/* Handles everything that is due. Does not block. */
void api_server_run(struct api_server *server);
/* Returns the milliseconds after which the server must run again. */
int64_t api_server_timeout_ms(struct api_server *server);

/* Counts the user's open connections with those of all unlisted users, or no longer (api/quota.h),
 * and closes them if that makes too many. */
void api_server_set_unlisted(struct api_server *server, uid_t uid, bool is_unlisted);

/* ---- a request ---- */

/* The context of the server's routes. */
void *api_request_context(const struct api_request *request);
void *api_request_server_data(const struct api_request *request);

/* Returns the path, borrowed, valid until the handler returns. */
const char *api_request_path(const struct api_request *request);

/* Returns the path with its query as it was sent, borrowed; "" on a server without `admit`. */
const char *api_request_target(const struct api_request *request);

/* Returns the request's method, borrowed. */
const char *api_request_method(const struct api_request *request);

/* Returns the body before it is parsed, borrowed; NULL with `ret_size` 0 when there is none. */
const char *api_request_bytes(const struct api_request *request, size_t *ret_size);

/*
 * Admits a request that `admit` has left unanswered: its connection counts for the user from now
 * on, and the handler is called.
 *
 * peer: the user that is proven to have sent it
 * key:  signs the answer (api/answer_code.h)
 */
void api_request_admit(struct api_request *request, const struct api_peer *peer,
    const uint8_t key[static SHA256_SIZE]);

/* Returns the user and process that sent the request, as the kernel or `admit` identified them. */
struct api_peer api_request_peer(const struct api_request *request);

/* Did it come from another machine, signed? Neither it nor its answer is encrypted then. */
bool api_request_is_signed(const struct api_request *request);

uint64_t api_request_id(const struct api_request *request); /* the {id} of the path, or 0 */

/* Returns the {name} of the path, borrowed; "" when the path has none. Of an {id} such as 12_7, the
 * task with index 7 of an array: "7". */
const char *api_request_name(const struct api_request *request);

/* Returns the body, borrowed, or NULL when there is none. A body that is not JSON has been answered
 * with 400 already. */
const json_t *api_request_body(const struct api_request *request);

/* Returns a query parameter, borrowed, or NULL. */
const char *api_request_query(const struct api_request *request, const char *key);

/* Returns a header of the request, borrowed, or NULL. */
const char *api_request_header(const struct api_request *request, const char *name);

/* Answers; takes over the reference to `body`. NULL, from a failed allocation, answers 500. */
void api_reply(struct api_request *request, int status, json_t *body);

/* The same for JSON as text, written with these flags; takes over `text`. */
#define API_JSON_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))
void api_reply_text(struct api_request *request, int status, char *text);

/* Takes bytes of a long answer from the quota. Returns false when none are left: the request has
 * been answered with 503 then. */
bool api_request_hold(struct api_request *request, size_t bytes);

/* The same for a text whose bytes api_request_hold has taken. */
void api_reply_held_text(struct api_request *request, int status, char *text);

/* Returns {"code": .., "message": ..}; the code follows from the status. NULL when memory is out. */
json_t *api_error_json(int status, const char *message);

/* Answers {"error": {"code": .., "message": ..}}. */
void api_reply_error(struct api_request *request, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Answers with bytes.
 *
 * type:    Content-Type
 * data:    `size` bytes, copied
 * headers: ended by one without a name; or NULL
 */
void api_reply_bytes(struct api_request *request, const char *type, const void *data, size_t size,
    const struct api_header *headers);

#endif
