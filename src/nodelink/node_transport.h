/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP connection between an agent and the controller that carries lines: in the clear, where each
 * line is signed (munge_seal.h, report_session.h), or within TLS (tls_channel.h), where lines need
 * no signature. For the owner both are the same:
 *
 *     node_transport_init(&transport, loop, credentials, &options);
 *     ... uv_accept or uv_tcp_connect with &transport.tcp ...
 *     node_transport_start(&transport);       on_open: lines can be sent; on_line: one came
 *     ...
 *     node_transport_close(&transport);       on_closed: node_transport_fini
 *
 * Contract:
 *   1. on_line is called for the first line that came. The owner uses it, and then asks for the
 *      next one until there is none. It pauses where it cannot use a line at once; within TLS it
 *      may do so only before it closes the connection.
 *   2. on_end is called once: the owner closes the connection there. All hooks may close it; none
 *      but on_closed is called after that.
 *   3. Within TLS nothing is delivered or sent before the peer has proven that it has the key.
 */
#ifndef COLLOC_NODELINK_NODE_TRANSPORT_H
#define COLLOC_NODELINK_NODE_TRANSPORT_H

#include "nodelink/line_buffer.h"
#include "nodelink/tls_channel.h"

struct node_transport;

enum transport_end {
    TRANSPORT_GONE,     /* the peer has closed the connection, or it broke */
    TRANSPORT_TOO_LONG, /* a line is longer than line_max, or memory is out */
    TRANSPORT_REFUSED,  /* the peer has another key or protocol, or what came was altered */
};

struct node_transport_hooks {
    void (*on_open)(struct node_transport *transport); /* may be NULL */
    void (*on_line)(struct node_transport *transport, char *line);
    void (*on_end)(struct node_transport *transport, enum transport_end end, const char *why);
    void (*on_closed)(struct node_transport *transport);
};

struct node_transport {
    struct line_buffer input; /* first: line_buffer_on_room */
    uv_tcp_t tcp;
    void *owner;
    const struct node_transport_hooks *hooks;
    struct tls_channel *tls; /* NULL: in the clear */
    bool is_open, is_paused, has_read;
};

/*
 * Prepares `transport->tcp`. node_transport_close must follow, also after an error.
 *
 * credentials: borrowed; NULL: in the clear
 * line_max:    bytes of a line, with its end
 * hooks:       borrowed
 *
 * Returns 0 or -ENOMEM.
 */
int node_transport_init(struct node_transport *transport, uv_loop_t *loop,
    const struct tls_credentials *credentials, size_t line_max,
    const struct node_transport_hooks *hooks, void *owner);

/* Begins to read, once the connection is there. */
void node_transport_start(struct node_transport *transport);

/* Stops reading, and goes on. */
void node_transport_pause(struct node_transport *transport);
void node_transport_resume(struct node_transport *transport);

/* Removes the line that on_line has got. Returns the next one; NULL: it has not come yet. */
char *node_transport_next_line(struct node_transport *transport);

/* Sends a line, given without its end, once the transport is open. What the peer does not read is
 * stored (node_transport_unsent). Returns 0 or -ENOMEM: it was not sent. */
int node_transport_send(struct node_transport *transport, const char *line);

/* Returns the bytes that were not sent yet. */
size_t node_transport_unsent(const struct node_transport *transport);

/* Has the peer proven by TLS that it has the key? */
bool node_transport_is_proven(const struct node_transport *transport);

/* Ends the connection. on_closed is called later, from the loop. */
void node_transport_close(struct node_transport *transport);

/* Releases the memory, after on_closed. */
void node_transport_fini(struct node_transport *transport);

#endif
