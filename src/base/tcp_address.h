/* SPDX-License-Identifier: Apache-2.0 */
/* "127.0.0.1:7480", "[::1]:7480": a numeric address and a port, and a socket that listens there. */
#ifndef COLLOC_BASE_TCP_ADDRESS_H
#define COLLOC_BASE_TCP_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/fault.h"

struct tcp_address {
    struct sockaddr_storage storage;
    socklen_t size;
};

enum { TCP_ADDRESS_TEXT_SIZE = 64 };

/* Reads an address. Returns 0 or -EINVAL. */
int tcp_address_parse(const char *text, struct tcp_address *ret_address);

/* Has a text the form of a host, by its name or its number, and a port to connect to, such as
 * "login1:7490" or "[::1]:7490"? Looks nothing up. */
bool tcp_address_is_host_port(const char *text);

/* Writes the address in the form that tcp_address_parse reads. Returns `text`. */
const char *tcp_address_format(const struct tcp_address *address, char text[TCP_ADDRESS_TEXT_SIZE]);

/* Returns the port. */
int tcp_address_port(const struct tcp_address *address);

/* Is it an address of the loopback interface? */
bool tcp_address_is_loopback(const struct tcp_address *address);

/* Returns the network of a peer: an address of IPv4, also as mapped into IPv6, or a /64 of IPv6. */
uint64_t tcp_address_network(const struct tcp_address *address);

/*
 * Binds and listens, without blocking.
 *
 * address: port 0: a free one, which the address then has
 *
 * Returns a descriptor for the caller to close, or -errno with a fault.
 */
int tcp_address_listen(struct tcp_address *address, struct fault *fault);

/*
 * Tests whether a request with this Host header may come from a page of this server. A page of
 * another site can let its own host name resolve to this address (DNS rebinding); its requests then
 * carry that name. Accepted are the address itself, and localhost, 127.0.0.1 and [::1] with any
 * port, since a tunnel may use any port.
 *
 * host: NULL: the request has none
 */
bool tcp_address_is_host(const struct tcp_address *address, const char *host);

#endif
