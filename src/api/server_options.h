/* SPDX-License-Identifier: Apache-2.0 */
/* What a server is created with: where it listens, which handlers answer, and its limits. */
#ifndef COLLOC_API_SERVER_OPTIONS_H
#define COLLOC_API_SERVER_OPTIONS_H

#include "api/request.h"

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

#endif
