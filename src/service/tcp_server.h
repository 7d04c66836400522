/* SPDX-License-Identifier: Apache-2.0 */
/* An API server in a libuv loop, on TCP or on a Unix socket. */
#ifndef COLLOC_SERVICE_TCP_SERVER_H
#define COLLOC_SERVICE_TCP_SERVER_H

#include <uv.h>

#include "api/server.h"
#include "base/tcp_address.h"

struct tcp_server;

/* Creates a server that does not listen yet. `loop` is borrowed. Returns NULL when memory is
 * out. */
struct tcp_server *tcp_server_create(uv_loop_t *loop);

/*
 * Binds, listens and serves.
 *
 * address: "127.0.0.1:7480"; with port 0 a free one
 * options: of the API server; its listen_fd is set here
 *
 * Returns 0; or -errno with a fault: -EINVAL for an invalid address, -EADDRINUSE for a port in use.
 */
int tcp_server_listen(struct tcp_server *server, const char *address,
    const struct api_server_options *options, struct fault *fault);

typedef void tcp_server_listening(void *server_data);

/*
 * The same; but where another process has the port, it logs that as an error and tries again every
 * ten seconds. So no user keeps a daemon from starting by taking its port while it is restarted.
 *
 * setting:      that has the address, for messages
 * address:      borrowed until it listens, and so is what `options` points to
 * on_listening: called once it listens, perhaps at once, with the server_data of `options`
 *
 * Returns 0, also while it does not listen yet; or a fault as tcp_server_listen.
 */
int tcp_server_listen_patiently(struct tcp_server *server, const char *setting, const char *address,
    const struct api_server_options *options, tcp_server_listening *on_listening,
    struct fault *fault);

/* Serves on the Unix socket `options->socket_path`. Returns as api_server_create. */
int tcp_server_listen_unix(
    struct tcp_server *server, const struct api_server_options *options, struct fault *fault);

/* Returns whether tcp_server_listen has succeeded and tcp_server_close was not called. */
bool tcp_server_is_listening(const struct tcp_server *server);

/* Returns the address, borrowed; meaningful once it listens. */
const struct tcp_address *tcp_server_address(const struct tcp_server *server);

/* Sends answers that were made outside of the server's own turns. */
void tcp_server_run(struct tcp_server *server);

/* Ends listening and answers pending requests with 503. A second call does nothing; NULL is
 * fine. */
void tcp_server_close(struct tcp_server *server);

/* Releases the server once the loop has run after tcp_server_close. NULL is fine. */
void tcp_server_destroy(struct tcp_server *server);

#endif
