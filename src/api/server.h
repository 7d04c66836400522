/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP and JSON over a Unix socket, server side: transport, routing, peers and quotas. Handlers of
 * the caller answer the requests. The server has no thread: the caller polls api_server_fd for
 * reading, and calls api_server_run when it is readable or api_server_timeout_ms has passed.
 */
#ifndef COLLOC_API_SERVER_H
#define COLLOC_API_SERVER_H

#include <stdint.h>
#include <sys/types.h>

#include "api/server_options.h"
#include "base/fault.h"

struct api_server;

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

#endif
