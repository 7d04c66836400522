/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs an HTTP server over TCP in the loop. libmicrohttpd has one descriptor to poll and one
 * timeout: the server runs when the descriptor is readable and when the timeout has passed, and
 * sets its next timeout after each run. While the port is taken, the timer is that of the next try.
 */
#include "service/tcp_server.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "service/aligned_timer.h"

enum { TRY_AGAIN_MS = 10000 }; /* chosen */

struct tcp_server {
    uv_loop_t *loop;
    struct tcp_address address;
    struct api_server *api; /* NULL: it does not listen */
    uv_poll_t poll;         /* initialised while `api` exists */
    uv_timer_t timer;
    bool is_closed;
    const char *wanted; /* the address of a server that does not listen yet */
    struct api_server_options options;
    tcp_server_listening *on_listening;
};

struct tcp_server *tcp_server_create(uv_loop_t *loop)
{
    struct tcp_server *server = calloc(1, sizeof *server);
    if (!server)
        return NULL;
    server->loop = loop;
    uv_timer_init(loop, &server->timer);
    server->timer.data = server->poll.data = server;
    return server;
}

static void try_to_listen(struct tcp_server *server);

static void on_time(uv_timer_t *timer)
{
    struct tcp_server *server = timer->data;
    if (server->api)
        tcp_server_run(server);
    else
        try_to_listen(server);
}

void tcp_server_run(struct tcp_server *server)
{
    if (!server->api)
        return;
    api_server_run(server->api);
    uv_timer_start(&server->timer, on_time,
        aligned_earlier_ms(server->loop, (uint64_t)api_server_timeout_ms(server->api)), 0);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    tcp_server_run(poll->data);
}

static int begin_serving(
    struct tcp_server *server, const struct api_server_options *options, struct fault *fault)
{
    int r = api_server_create(options, fault, &server->api);
    if (r < 0)
        return r;
    uv_poll_init(server->loop, &server->poll, api_server_fd(server->api));
    uv_poll_start(&server->poll, UV_READABLE, on_readable);
    tcp_server_run(server);
    return 0;
}

int tcp_server_listen(struct tcp_server *server, const char *address,
    const struct api_server_options *options, struct fault *fault)
{
    struct api_server_options with_socket = *options;
    if (tcp_address_parse(address, &server->address) < 0)
        return fault_set(fault, EINVAL, "%s is no address with a port", address);
    int r = tcp_address_listen(&server->address, fault);
    if (r < 0)
        return r;
    with_socket.listen_fd = r;
    return begin_serving(server, &with_socket, fault);
}

static void on_listening(struct tcp_server *server)
{
    server->on_listening(server->options.server_data);
}

/* A fault other than a taken port had been reported at the first try. */
static void try_to_listen(struct tcp_server *server)
{
    struct fault fault;
    if (tcp_server_listen(server, server->wanted, &server->options, &fault) == 0)
        on_listening(server);
    else
        uv_timer_start(&server->timer, on_time, TRY_AGAIN_MS, 0);
}

int tcp_server_listen_patiently(struct tcp_server *server, const char *setting, const char *address,
    const struct api_server_options *options, tcp_server_listening *listening, struct fault *fault)
{
    server->wanted = address;
    server->options = *options;
    server->on_listening = listening;
    int r = tcp_server_listen(server, address, options, fault);
    if (r == 0)
        on_listening(server);
    if (r < 0)
        fault_prefix(fault, r, "%s", setting);
    if (r != -EADDRINUSE)
        return r;
    log_error("%s; it is tried again every %d s", fault->text, TRY_AGAIN_MS / 1000);
    uv_timer_start(&server->timer, on_time, TRY_AGAIN_MS, 0);
    return 0;
}

int tcp_server_listen_unix(
    struct tcp_server *server, const struct api_server_options *options, struct fault *fault)
{
    return begin_serving(server, options, fault);
}

bool tcp_server_is_listening(const struct tcp_server *server)
{
    return server->api;
}

const struct tcp_address *tcp_server_address(const struct tcp_server *server)
{
    return &server->address;
}

void tcp_server_close(struct tcp_server *server)
{
    if (!server || server->is_closed)
        return;
    server->is_closed = true;
    if (server->api) {
        uv_poll_stop(&server->poll);
        uv_close((uv_handle_t *)&server->poll, NULL);
    }
    api_server_destroy(server->api);
    server->api = NULL;
    uv_close((uv_handle_t *)&server->timer, NULL);
}

void tcp_server_destroy(struct tcp_server *server)
{
    free(server);
}
