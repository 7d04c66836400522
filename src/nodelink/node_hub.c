/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections. Each sends lines, of which one is taken at a time: while it waits for the pool
 * nothing is read from its connection, so the sender's TCP waits too.
 *
 *     accepted --line--> waiting for a turn --> opened by munge --> judged --> reads on
 *                        (node_hub_turn.c)                          (node_hub_report.c)
 *             line within TLS, or signed by the connection's key -> judged
 *
 * An unproven connection is one without an accepted report. There are few places for these, and
 * each is closed after some seconds. A new one beyond them costs another its place: one of the
 * network that most of them come from, that has not sent a line yet, nor proven by TLS that it has
 * the key. So a flood pushes out its own connections, neither an agent elsewhere nor one beside it
 * whose report waits to be opened:
 *
 *     10.0.0.9   120 connections, 3 of which have sent a line      the oldest of the other 117
 *     10.0.0.5   9 connections                                     none
 *     10.0.0.7   1 connection                                      none
 */
#include "nodelink/node_hub.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/crowd.h"
#include "base/list.h"
#include "base/log.h"
#include "nodelink/node_hub_state.h"

enum {
    LINE_MAX_SIZE = REPORT_SIZE_MAX / 3 * 4 + 4096, /* a credential is base64 */
    SWEEP_MS = 1000,
    UNPROVEN_MAX_MS = 10 * 1000, /* chosen: a report follows within a second */
    SILENCE_MAX_MS = 30 * 1000,  /* without a line; chosen: 30 reports */
    BACKLOG = 96, /* chosen: below HUB_UNPROVEN_MAX: what came is read between new ones */
};

/* ---- reading ---- */

static void on_closed(struct node_transport *transport)
{
    struct hub_connection *connection = transport->owner;
    connection->is_gone = true;
    hub_reap(connection);
}

/* Opens at once what needs no munged; another line waits for a turn. */
static void take_lines(struct hub_connection *connection)
{
    while (connection->line && hub_is_quick(connection)) {
        hub_open_quick_line(connection);
        if (!connection->link)
            return;
        connection->line = connection->is_refused
                               ? NULL
                               : node_transport_next_line(&connection->transport);
    }
    if (connection->line || connection->is_refused)
        node_transport_pause(&connection->transport);
    if (connection->line || connection->outbox)
        hub_wait_for_turn(connection);
}

static void on_line(struct node_transport *transport, char *line)
{
    struct hub_connection *connection = transport->owner;
    connection->heard_ms = uv_now(connection->hub->parts.loop);
    connection->line = line;
    take_lines(connection);
}

static void on_end(struct node_transport *transport, enum transport_end end, const char *why)
{
    struct hub_connection *connection = transport->owner;
    connection->hub->counts.refused += end == TRANSPORT_TOO_LONG;
    if (end == TRANSPORT_REFUSED)
        hub_log_refusal(connection, why);
    hub_drop(connection);
}

/* Goes on to the next line. */
static void resume_reading(struct hub_connection *connection)
{
    connection->line = node_transport_next_line(&connection->transport);
    take_lines(connection);
    if (connection->link && !connection->line && !connection->is_refused)
        node_transport_resume(&connection->transport);
}

/* A turn has opened its line. */
static void on_opened(struct hub_connection *connection)
{
    hub_take_report(connection);
    node_report_fini(&connection->report);
    if (connection->link && !connection->is_refused)
        resume_reading(connection);
}

/* ---- new connections ---- */

/* Has it sent neither a whole line nor a proof of the key? */
static bool is_idle(const struct hub_connection *connection)
{
    return !connection->line && !connection->is_waiting && !connection->is_in_turn &&
           !node_transport_is_proven(&connection->transport);
}

/* Of the network that crowds the places, or of all where each has another: the oldest connection
 * without a line, else the newest. */
static void drop_of_crowd(struct node_hub *hub)
{
    struct hub_connection *unproven[HUB_UNPROVEN_MAX + 1], *dropped = NULL;
    uint64_t networks[HUB_UNPROVEN_MAX + 1] = {0};
    int n = 0, most;
    for (struct hub_connection *c = hub->first; c && n < HUB_UNPROVEN_MAX + 1; c = c->next) {
        if (c->node)
            continue;
        networks[n] = c->network;
        unproven[n++] = c;
    }
    uint64_t crowd = crowd_find(networks, n, &most);
    for (int i = 0; i < n && !(dropped && is_idle(dropped)); i++)
        if (most == 1 || unproven[i]->network == crowd)
            dropped = unproven[i];
    if (dropped)
        hub_drop(dropped);
}

static void note_peer(struct hub_connection *connection)
{
    struct tcp_address address = {.size = sizeof address.storage};
    int size = (int)sizeof address.storage;
    if (uv_tcp_getpeername(&connection->transport.tcp, (struct sockaddr *)&address.storage, &size) <
        0)
        return;
    address.size = (socklen_t)size;
    tcp_address_format(&address, connection->peer);
    connection->network = tcp_address_network(&address);
}

/* A peer whose machine has gone is noticed in half a minute, not in TCP's quarter of an hour. */
static void limit_silence(uv_tcp_t *tcp)
{
    unsigned limit_ms = SILENCE_MAX_MS;
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)tcp, &fd) == 0)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
}

static void link_last(struct hub_connection *connection)
{
    struct node_hub *hub = connection->hub;
    LIST_APPEND(hub->last, connection);
    hub->n_connections++;
    hub->n_unproven++;
}

static void on_connection(uv_stream_t *listener, int status)
{
    static const struct node_transport_hooks hooks = {NULL, on_line, on_end, on_closed};
    struct node_hub *hub = listener->data;
    struct hub_connection *connection = status == 0 ? calloc(1, sizeof *connection) : NULL;
    if (!connection)
        return;
    *connection = (struct hub_connection){
        .hub = hub, .begun_ms = uv_now(hub->parts.loop), .heard_ms = uv_now(hub->parts.loop)};
    struct node_transport *transport = &connection->transport;
    int r = node_transport_init(
        transport, hub->parts.loop, hub->credentials, LINE_MAX_SIZE, &hooks, connection);
    link_last(connection);
    if (uv_accept(listener, (uv_stream_t *)&transport->tcp) < 0 || r < 0) {
        hub_drop(connection);
        return;
    }
    note_peer(connection);
    limit_silence(&transport->tcp);
    node_transport_start(transport);
    if (hub->n_unproven > HUB_UNPROVEN_MAX)
        drop_of_crowd(hub);
}

static void on_sweep(uv_timer_t *timer)
{
    struct node_hub *hub = timer->data;
    uint64_t now_ms = uv_now(hub->parts.loop);
    for (struct hub_connection *c = hub->first, *next; c; c = next) {
        next = c->next;
        bool is_late = !c->node && now_ms - c->begun_ms > UNPROVEN_MAX_MS;
        if (is_late || now_ms - c->heard_ms > SILENCE_MAX_MS)
            hub_drop(c);
    }
}

/* ---- its life ---- */

/* The socket listens already, so that libuv has nothing left to refuse. */
static int start_listening(struct node_hub *hub, struct fault *fault)
{
    int fd = tcp_address_listen(&hub->address, fault);
    if (fd < 0)
        return fd;
    uv_tcp_init(hub->parts.loop, &hub->listener);
    uv_timer_init(hub->parts.loop, &hub->sweep);
    uv_timer_init(hub->parts.loop, &hub->gather);
    hub->listener.data = hub->sweep.data = hub->gather.data = hub;
    uv_tcp_open(&hub->listener, fd);
    uv_listen((uv_stream_t *)&hub->listener, BACKLOG, on_connection);
    uv_timer_start(&hub->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    return 0;
}

static int prepare_proof(struct node_hub *hub, struct fault *fault)
{
    const struct node_hub_options *options = &hub->parts;
    if (options->key)
        return tls_credentials_create(options->key, NULL, fault, &hub->credentials);
    hub->seal = munge_seal_create(options->munge_socket, options->agents, options->agents);
    return hub->seal ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

int node_hub_create(
    const struct node_hub_options *options, struct fault *fault, struct node_hub **ret_hub)
{
    struct node_hub *hub = calloc(1, sizeof *hub);
    *ret_hub = NULL;
    if (!hub)
        return fault_set(fault, ENOMEM, "out of memory");
    hub->parts = *options;
    hub->on_opened = on_opened;
    hub->last = &hub->first;
    hub->last_waiting = &hub->first_waiting;
    hub->refusal_logged_us = -TIME_NEVER / 2;
    int r = prepare_proof(hub, fault);
    hub->parts.key = NULL;
    if (r == 0 && tcp_address_parse(options->address, &hub->address) < 0)
        r = fault_set(fault, EINVAL, "%s: not a numeric address with a port, such as 0.0.0.0:7490",
            options->address);
    if (r == 0)
        r = start_listening(hub, fault);
    if (r < 0) {
        node_hub_destroy(hub);
        return r;
    }
    *ret_hub = hub;
    return 0;
}

void node_hub_close(struct node_hub *hub)
{
    if (!hub || hub->is_closing)
        return;
    hub->is_closing = true;
    while (hub->first)
        hub_drop(hub->first);
    uv_close((uv_handle_t *)&hub->listener, NULL);
    uv_close((uv_handle_t *)&hub->sweep, NULL);
    uv_close((uv_handle_t *)&hub->gather, NULL);
}

void node_hub_destroy(struct node_hub *hub)
{
    if (!hub)
        return;
    while (hub->first_waiting) {
        struct hub_connection *connection = hub->first_waiting;
        hub->first_waiting = connection->next_waiting;
        hub_free_connection(connection);
    }
    for (size_t i = 0; i < hub->n_nodes; i++)
        free(hub->nodes[i]);
    free(hub->nodes);
    munge_seal_destroy(hub->seal);
    tls_credentials_destroy(hub->credentials);
    free(hub);
}

const struct tcp_address *node_hub_address(const struct node_hub *hub)
{
    return &hub->address;
}

struct node_hub_counts node_hub_counts(const struct node_hub *hub)
{
    struct node_hub_counts counts = hub->counts;
    counts.connections = hub->n_connections;
    counts.nodes = hub->n_connections - hub->n_unproven;
    return counts;
}

/* The answer that goes to the node's agent next. Returns NULL, with -ENOTCONN or -ENOMEM in
 * *ret_error, when there is none. */
static struct node_answer *next_answer(
    struct node_hub *hub, const char *node, struct hub_connection **ret_connection, int *ret_error)
{
    *ret_error = -ENOTCONN;
    for (size_t i = 0; i < hub->n_nodes; i++) {
        struct hub_connection *connection = hub->nodes[i]->connection;
        if (!connection || strcmp(hub->nodes[i]->name, node) != 0)
            continue;
        *ret_connection = connection;
        *ret_error = -ENOMEM;
        return hub_outbox(connection);
    }
    return NULL;
}

int node_hub_pin(struct node_hub *hub, const char *node, const struct node_pin *pin)
{
    struct hub_connection *connection = NULL;
    int error;
    struct node_answer *answer = next_answer(hub, node, &connection, &error);
    if (!answer)
        return error;
    if (answer->n_pins == NODE_PINS_MAX)
        return -ENOBUFS;
    answer->pins[answer->n_pins++] = *pin;
    hub_wait_for_turn(connection);
    return 0;
}

int node_hub_order(struct node_hub *hub, const char *node, const uint32_t *jobs, size_t n)
{
    struct hub_connection *connection = NULL;
    int error;
    struct node_answer *answer = next_answer(hub, node, &connection, &error);
    if (!answer)
        return error;
    if (n > NODE_JOBS_MAX)
        return -ENOBUFS;
    answer->has_orders = true;
    answer->n_out = n;
    if (n)
        memcpy(answer->out, jobs, n * sizeof *jobs);
    hub_wait_for_turn(connection);
    return 0;
}
