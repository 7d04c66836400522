/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the server and what they share:
 *
 *     server.c          creates, runs and destroys the server
 *     listener.c        its Unix socket
 *     connections.c     the connections of each user, and whether the quota admits them
 *     unproven.c        connections over TCP whose user is not proven yet: which are closed
 *     http_request.c    libmicrohttpd's callbacks: a request from its first line to its end
 *     request_body.c    its body: collecting, limits, parsing
 *     route.c           which handler serves a path
 *     reply.c           answers
 *     stream.c          answers without an end
 */
#ifndef COLLOC_API_SERVER_PRIVATE_H
#define COLLOC_API_SERVER_PRIVATE_H

#include <microhttpd.h>
#include <sys/un.h>

#include "api/quota.h"
#include "api/server_options.h"
#include "api/unproven.h"
#include "base/fault.h"
#include "base/units.h"

/* Bytes that one user's requests may hold. Chosen: four times the largest submission. */
#define BYTES_PER_USER ((size_t)(64 * MIB))

/* Why a body cannot be used. */
enum body_problem {
    BODY_GOOD,
    BODY_TOO_LARGE,
    BODY_USER_FULL, /* the user's byte quota is used up */
    BODY_ALL_FULL,  /* the byte quota of all users together is used up */
    BODY_NO_MEMORY,
};

enum { ROUTE_NAME_SIZE = 128 }; /* of a {name} in a path; a longer one matches nothing */

/* An accepted connection. */
struct connection {
    struct quota_user *user;
    uid_t uid;
    int fd;
    struct unproven unproven; /* in the server's list until it is proven */
    char *target;             /* of its request: the path with the query; NULL: it is not needed */
    struct connection *next, **link; /* in server->connections */
};

struct api_server {
    struct api_server_options options;
    char socket_path[sizeof((struct sockaddr_un *)0)->sun_path];
    dev_t socket_device;
    ino_t socket_inode;
    struct MHD_Daemon *http;
    struct quota quota;
    struct connection *connections; /* accepted ones */
    struct unproven_list unproven;  /* without a user; empty unless options.proves_users */
    struct api_request *suspended;  /* requests that wait for their answer */
    struct api_stream *streams;     /* answers without an end */
    bool is_stopping;
};

struct api_request {
    struct api_server *server;
    struct MHD_Connection *connection;
    struct api_peer peer;
    struct connection *counted; /* as what its connection is counted */
    size_t held_bytes;          /* taken from the quota */
    bool is_signed;             /* the answer gets a code by `key` */
    uint8_t key[SHA256_SIZE];
    const struct api_route *route;
    const char *path; /* libmicrohttpd's */
    uint64_t id;
    char name[ROUTE_NAME_SIZE];
    char *body_text;
    size_t body_size, body_capacity;
    enum body_problem problem;
    json_t *body;
    struct MHD_Response *response; /* the answer, once there is one */
    int status;
    bool is_suspended;
    struct api_request *next, **link; /* in server->suspended */
};

/* ---- listener.c ---- */

/* Binds and listens. Returns 0, or -errno with a fault: see api_server_create. */
int listener_open(struct api_server *server, struct fault *fault, int *ret_fd);

/* Removes the socket file, unless a newer daemon has put its own there. */
void listener_remove_file(const struct api_server *server);

/* ---- connections.c ---- */

/* Returns the ids of the process at the other end. Their uid is (uid_t)-1 when the kernel does not
 * report them; over TCP it is an id that no user has. */
struct api_peer connection_peer(const struct api_server *server, struct MHD_Connection *connection);

/* libmicrohttpd's callback: counts connections, and closes one that the quota refuses before any of
 * its bytes is read. */
void connection_on_change(void *context, struct MHD_Connection *connection, void **socket_context,
    enum MHD_ConnectionNotificationCode code);

/* Closes the unproven connections whose time is over. */
void connections_drop_late(struct api_server *server);

/*
 * Counts a connection and the bytes that its request holds for its proven user.
 *
 * Returns false when the quota refuses that: nothing has changed then.
 */
bool connection_set_user(
    struct api_server *server, struct connection *counted, uid_t uid, size_t held_bytes);

/* ---- http_request.c: libmicrohttpd's callbacks ---- */

/* The parameters are libmicrohttpd's; `context` is the server. */
void *http_request_on_path(void *context, const char *path, struct MHD_Connection *connection);
enum MHD_Result http_request_on_data(void *context, struct MHD_Connection *connection,
    const char *url, const char *method, const char *version, const char *data, size_t *data_size,
    void **request_context);
void http_request_on_end(void *context, struct MHD_Connection *connection, void **request_context,
    enum MHD_RequestTerminationCode code);

/* ---- request_body.c ---- */

/* Appends a piece of the body; sets request->problem when that fails. After a problem all further
 * pieces are dropped. */
void request_body_append(struct api_request *request, const char *data, size_t size);

/* Parses the body. Returns false when it cannot: the request has been answered then. */
bool request_body_parse(struct api_request *request);

/* ---- reply.c ---- */

/* Takes bytes from the user's quota until the request ends. */
enum body_problem request_take_bytes(struct api_request *request, size_t bytes);

/* Answers with 413 or 503; does nothing for BODY_GOOD. */
void reply_body_problem(struct api_request *request, enum body_problem problem);

/* Answers with a response, which is taken over; NULL is ignored. */
void reply_response(struct api_request *request, int status, struct MHD_Response *response);

/* ---- stream.c ---- */

/* The server is stopping: each stream ends with the server's next runs. */
void streams_end(struct api_server *server);

/* ---- route.c ---- */

/*
 * Finds the route of a request.
 *
 * ret_id:     the {id} in the path, or 0
 * ret_name:   the {name} in the path, or ""
 * ret_status: 404 or 405 when there is none
 *
 * Returns NULL when there is none.
 */
const struct api_route *route_find(const struct api_route *routes, const char *method,
    const char *path, uint64_t *ret_id, char ret_name[ROUTE_NAME_SIZE], int *ret_status);

#endif
