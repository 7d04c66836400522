/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 between an agent and the controller, by a key that both have in a file (an external PSK,
 * RFC 8446, always with an exchange of ephemeral keys). Only memory is read and written; the
 * sockets are the caller's:
 *
 *     tls_channel_take(channel, bytes, n);            from the socket
 *     while ((n = tls_channel_read(channel, room, size, &fault)) > 0)
 *         ... n bytes of plain text ...
 *     output = tls_channel_take_output(channel, &n);  to the socket, after each read and write
 *     if (n < 0) ... the end of the connection ...
 *
 * Contract:
 *   1. Nothing is read before both ends have proven that they have the key, and nothing that was
 *      altered, repeated, left out or moved on its way. No call waits.
 *   2. There are no certificates, no session tickets, no early data, no older versions of TLS and
 *      no renegotiation.
 *   3. Until the key is proven, TLS_HANDSHAKE_MAX bytes are read of a peer, and about 10 KiB of
 *      memory are used for it.
 */
#ifndef COLLOC_NODELINK_TLS_CHANNEL_H
#define COLLOC_NODELINK_TLS_CHANNEL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"
#include "base/sha256.h"

enum { TLS_HANDSHAKE_MAX = 4096 }; /* chosen; measured: 295 bytes of an agent, 231 of the hub */

/* Of one end, for all its channels: its role and its key. */
struct tls_credentials;

/*
 * Creates the credentials of the controller or, with the name of a node, of its agent.
 *
 * node: copied; NULL: the controller's
 *
 * Returns 0; or -ENOMEM, or -ENOTSUP (GnuTLS cannot be used so on this machine), with a fault.
 */
int tls_credentials_create(const uint8_t key[static SHA256_SIZE], const char *node,
    struct fault *fault, struct tls_credentials **ret_credentials);

/* After all its channels. NULL is fine. */
void tls_credentials_destroy(struct tls_credentials *credentials);

struct tls_channel;

/* `credentials` is borrowed. Returns NULL when memory is out. */
struct tls_channel *tls_channel_create(const struct tls_credentials *credentials);

/* NULL is fine. */
void tls_channel_destroy(struct tls_channel *channel);

/* Gives it bytes of the peer, which are borrowed until tls_channel_read returns 0 or an error. */
void tls_channel_take(struct tls_channel *channel, const void *bytes, size_t n);

/*
 * Goes on as far as the taken bytes allow: with the handshake, which an agent's first call begins
 * without any, then with the plain text.
 *
 * Returns the bytes of plain text in `room`; 0: more bytes of the peer are needed; or, for the end
 * of the connection, -errno with a fault: -EACCES (the peer has another key), -EPROTO (it does not
 * speak this TLS, or what came was altered), -EMSGSIZE (contract 3), -ECONNRESET (it has ended the
 * connection), -ENOMEM.
 */
ssize_t tls_channel_read(struct tls_channel *channel, void *room, size_t size, struct fault *fault);

/* Encrypts, once tls_channel_is_open. Returns 0, or -ENOMEM: the channel cannot be used further. */
int tls_channel_write(struct tls_channel *channel, const void *text, size_t size);

/* Returns what is to be sent to the peer, for the caller to free; NULL: nothing. */
void *tls_channel_take_output(struct tls_channel *channel, size_t *ret_size);

/* Has the peer proven that it has the key? */
bool tls_channel_is_open(const struct tls_channel *channel);

/* Returns, at the controller, the node whose agent the peer says to be, borrowed; before it has
 * said that: "". */
const char *tls_channel_peer(const struct tls_channel *channel);

#endif
