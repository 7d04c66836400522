/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates, runs and destroys the server: libmicrohttpd with one epoll descriptor and no thread.
 * server_private.h lists the other parts.
 *
 * Contract:
 *   1. Every byte of a body and of a long answer is counted in the quota (api/quota.h) until the
 *      request has ended; a connection that the quota refuses is closed and never handled.
 *   2. The caller runs the server again in time: when accept fails for lack of descriptors,
 *      libmicrohttpd stops listening until its next run, and no event wakes it. Then connections
 *      are open, or one waits to be accepted, and the server runs each RUN_AGAIN_MS. Otherwise it
 *      runs each IDLE_AGAIN_MS, for a connection that gave up in between.
 *   3. A body is parsed only when there is memory for it: libjansson does not survive a failed
 *      allocation.
 */
#include "api/server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/server_private.h"

/* All chosen. */
#define CONNECTIONS_MAX      2048
#define CONNECTIONS_RESERVED 64                   /* for root */
#define BYTES_RESERVED       ((size_t)(64 * MIB)) /* for root */
#define LAST_RUNS            64                   /* of the server, to send answers when it stops */
#define RUN_AGAIN_MS         1000
#define IDLE_AGAIN_MS        10000

/* Half of the descriptors that the process may have; the rest is for the caller. */
static int connections_max(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 2 < CONNECTIONS_MAX)
        return (int)files.rlim_cur / 2 + 1;
    return CONNECTIONS_MAX;
}

static int init_quota(struct api_server *server)
{
    int connections = connections_max();
    struct quota_limits limits = {
        .connections = connections,
        .connections_reserved = connections / 4 < CONNECTIONS_RESERVED ? connections / 4
                                                                       : CONNECTIONS_RESERVED,
        .connections_per_user = server->options.connections_per_user_max,
        .connections_unproven = server->options.proves_users
                                    ? connections /* limited by unproven.h */
                                    : server->options.connections_per_user_max,
        .bytes = server->options.bytes_max,
        .bytes_reserved = server->options.bytes_max / 2 < BYTES_RESERVED
                              ? server->options.bytes_max / 2
                              : BYTES_RESERVED,
        .bytes_per_user = BYTES_PER_USER,
    };
    return quota_init(&server->quota, &limits);
}

static void free_server(struct api_server *server)
{
    quota_fini(&server->quota);
    free(server);
}

int api_server_create(
    const struct api_server_options *options, struct fault *fault, struct api_server **ret_server)
{
    struct api_server *server = calloc(1, sizeof *server);
    int fd;
    if (!server)
        return fault_set(fault, ENOMEM, "out of memory");
    server->options = *options;
    unproven_init(&server->unproven);
    int r = init_quota(server);
    if (r < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    else if (options->listen_fd)
        fd = options->listen_fd;
    else
        r = listener_open(server, fault, &fd);
    if (r < 0) {
        if (options->listen_fd)
            close(options->listen_fd);
        free_server(server);
        return r;
    }
    server->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        http_request_on_data, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)options->idle_timeout_s, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)server->quota.limits.connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)(32 * KIB), MHD_OPTION_NOTIFY_COMPLETED, http_request_on_end, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, connection_on_change, server, MHD_OPTION_URI_LOG_CALLBACK,
        http_request_on_path, server, MHD_OPTION_END);
    if (!server->http) {
        listener_remove_file(server);
        close(fd);
        free_server(server);
        return fault_set(fault, EIO, "%s: cannot start the HTTP server",
            options->socket_path ? options->socket_path : "TCP");
    }
    *ret_server = server;
    return 0;
}

/* Sends the last answers, as far as that does not block. */
static void flush_answers(struct api_server *server)
{
    for (int i = 0; i < LAST_RUNS && (i == 0 || api_server_timeout_ms(server) == 0); i++)
        MHD_run(server->http);
}

void api_server_destroy(struct api_server *server)
{
    if (!server)
        return;
    listener_remove_file(server);
    server->is_stopping = true;
    while (server->suspended)
        api_reply_error(server->suspended, 503, "the daemon is stopping");
    streams_end(server);
    flush_answers(server);
    MHD_stop_daemon(server->http);
    free_server(server);
}

int api_server_fd(const struct api_server *server)
{
    return MHD_get_daemon_info(server->http, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void api_server_run(struct api_server *server)
{
    MHD_run(server->http); /* first: an answer that is late is sent before its connection ends */
    connections_drop_late(server);
}

/* Is a connection open, or one not accepted yet? */
static bool is_in_use(struct api_server *server)
{
    struct pollfd listening = {
        .fd = MHD_get_daemon_info(server->http, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd,
        .events = POLLIN};
    return server->connections || poll(&listening, 1, 0) != 0;
}

int64_t api_server_timeout_ms(struct api_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout;
    bool is_due = MHD_get_timeout(server->http, &timeout) == MHD_YES;
    int64_t most_ms = is_in_use(server) ? RUN_AGAIN_MS : IDLE_AGAIN_MS;
    return is_due && timeout < (MHD_UNSIGNED_LONG_LONG)most_ms ? (int64_t)timeout : most_ms;
}
