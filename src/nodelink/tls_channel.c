/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GnuTLS over two buffers of memory: it pulls what the caller has taken from the socket, and pushes
 * into the output that the caller takes from here. An agent gives the name of its node as the
 * identity of the key; the key is the same for all names. A peer with another key is recognized by
 * the binder of its first message (RFC 8446, 4.2.11.2), before anything else is done for it.
 */
#include "nodelink/tls_channel.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodelink/node_report.h"

/* The digest of the ciphers has to be that of the key, SHA-256. GnuTLS wants a signature algorithm
 * although there is nothing to sign. */
static const char priority[] = "NONE:+VERS-TLS1.3:+AEAD:+AES-128-GCM:+CHACHA20-POLY1305:"
                               "+ECDHE-PSK:+GROUP-X25519:+GROUP-SECP256R1:"
                               "+SIGN-ECDSA-SECP256R1-SHA256:%DISABLE_TLS13_COMPAT_MODE";

struct tls_credentials {
    bool is_agent;
    gnutls_priority_t priority;
    gnutls_psk_client_credentials_t agent;
    gnutls_psk_server_credentials_t controller;
    uint8_t key[SHA256_SIZE];
};

struct tls_channel {
    const struct tls_credentials *credentials;
    gnutls_session_t session;
    bool is_open;
    size_t handshake_size;     /* what was pulled before that */
    char peer[NODE_NAME_SIZE]; /* at the controller */
    const char *input;         /* taken; borrowed */
    size_t input_size;
    char *output; /* owned */
    size_t output_size, output_capacity;
};

/* ---- credentials ---- */

/* The controller finds the key of an identity. A peer's identity may be any bytes. */
static int find_key(gnutls_session_t session, const char *identity, gnutls_datum_t *ret_key)
{
    struct tls_channel *channel = gnutls_session_get_ptr(session);
    if (!node_name_is_valid(identity))
        return -1;
    snprintf(channel->peer, sizeof channel->peer, "%s", identity);
    ret_key->data = gnutls_malloc(SHA256_SIZE);
    if (!ret_key->data)
        return -1;
    ret_key->size = SHA256_SIZE;
    memcpy(ret_key->data, channel->credentials->key, SHA256_SIZE);
    return 0;
}

/* Returns an error of GnuTLS or 0. */
static int set_keys(struct tls_credentials *credentials, const char *node)
{
    const gnutls_datum_t key = {credentials->key, SHA256_SIZE};
    int r;
    if (node) {
        r = gnutls_psk_allocate_client_credentials(&credentials->agent);
        return r < 0 ? r
                     : gnutls_psk_set_client_credentials(
                           credentials->agent, node, &key, GNUTLS_PSK_KEY_RAW);
    }
    r = gnutls_psk_allocate_server_credentials(&credentials->controller);
    if (r == 0)
        gnutls_psk_set_server_credentials_function(credentials->controller, find_key);
    return r;
}

int tls_credentials_create(const uint8_t key[static SHA256_SIZE], const char *node,
    struct fault *fault, struct tls_credentials **ret_credentials)
{
    struct tls_credentials *credentials = calloc(1, sizeof *credentials);
    *ret_credentials = NULL;
    if (!credentials)
        return fault_set(fault, ENOMEM, "out of memory");
    credentials->is_agent = node;
    memcpy(credentials->key, key, SHA256_SIZE);
    int r = gnutls_priority_init(&credentials->priority, priority, NULL);
    if (r == 0)
        r = set_keys(credentials, node);
    if (r == 0) {
        *ret_credentials = credentials;
        return 0;
    }
    tls_credentials_destroy(credentials);
    if (r == GNUTLS_E_MEMORY_ERROR)
        return fault_set(fault, ENOMEM, "out of memory");
    return fault_set(fault, ENOTSUP,
        "GnuTLS: %s: does this machine's policy of cryptography forbid TLS 1.3 with a shared key?",
        gnutls_strerror(r));
}

void tls_credentials_destroy(struct tls_credentials *credentials)
{
    if (!credentials)
        return;
    if (credentials->priority)
        gnutls_priority_deinit(credentials->priority);
    if (credentials->agent)
        gnutls_psk_free_client_credentials(credentials->agent);
    if (credentials->controller)
        gnutls_psk_free_server_credentials(credentials->controller);
    explicit_bzero(credentials->key, sizeof credentials->key);
    free(credentials);
}

/* ---- the two buffers ---- */

static bool is_too_long(const struct tls_channel *channel)
{
    return channel->handshake_size > TLS_HANDSHAKE_MAX;
}

static ssize_t pull_input(gnutls_transport_ptr_t context, void *room, size_t size)
{
    struct tls_channel *channel = context;
    size_t n = size < channel->input_size ? size : channel->input_size;
    if (!channel->is_open)
        channel->handshake_size += n;
    if (n == 0 || is_too_long(channel)) {
        gnutls_transport_set_errno(channel->session, n == 0 ? EAGAIN : EMSGSIZE);
        return -1;
    }
    memcpy(room, channel->input, n);
    channel->input += n;
    channel->input_size -= n;
    return (ssize_t)n;
}

/* Is there anything to pull? GnuTLS would otherwise ask a descriptor. */
static int pull_timeout(gnutls_transport_ptr_t context, unsigned wait_ms)
{
    const struct tls_channel *channel = context;
    return channel->input_size > 0;
}

static ssize_t push_output(gnutls_transport_ptr_t context, const void *bytes, size_t n)
{
    struct tls_channel *channel = context;
    if (n > channel->output_capacity - channel->output_size) {
        size_t capacity = 2 * channel->output_capacity + n;
        char *output = realloc(channel->output, capacity);
        if (!output) {
            gnutls_transport_set_errno(channel->session, ENOMEM);
            return -1;
        }
        channel->output = output;
        channel->output_capacity = capacity;
    }
    memcpy(channel->output + channel->output_size, bytes, n);
    channel->output_size += n;
    return (ssize_t)n;
}

void tls_channel_take(struct tls_channel *channel, const void *bytes, size_t n)
{
    channel->input = bytes;
    channel->input_size = n;
}

void *tls_channel_take_output(struct tls_channel *channel, size_t *ret_size)
{
    void *output = channel->output_size ? channel->output : NULL;
    *ret_size = channel->output_size;
    if (!output)
        return NULL;
    channel->output = NULL;
    channel->output_size = channel->output_capacity = 0;
    return output;
}

/* ---- a channel ---- */

/* Returns an error of GnuTLS or 0. */
static int begin_session(struct tls_channel *channel)
{
    const struct tls_credentials *credentials = channel->credentials;
    bool is_agent = credentials->is_agent;
    int r = gnutls_init(&channel->session, (is_agent ? GNUTLS_CLIENT : GNUTLS_SERVER) |
                                               GNUTLS_NONBLOCK | GNUTLS_NO_TICKETS |
                                               GNUTLS_NO_SIGNAL);
    if (r < 0)
        return r;
    gnutls_session_set_ptr(channel->session, channel);
    gnutls_transport_set_ptr(channel->session, channel);
    gnutls_transport_set_pull_function(channel->session, pull_input);
    gnutls_transport_set_pull_timeout_function(channel->session, pull_timeout);
    gnutls_transport_set_push_function(channel->session, push_output);
    gnutls_handshake_set_max_packet_length(channel->session, TLS_HANDSHAKE_MAX);
    r = gnutls_priority_set(channel->session, credentials->priority);
    if (r < 0)
        return r;
    return gnutls_credentials_set(channel->session, GNUTLS_CRD_PSK,
        is_agent ? (void *)credentials->agent : (void *)credentials->controller);
}

struct tls_channel *tls_channel_create(const struct tls_credentials *credentials)
{
    struct tls_channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return NULL;
    channel->credentials = credentials;
    if (begin_session(channel) == 0)
        return channel;
    tls_channel_destroy(channel);
    return NULL;
}

void tls_channel_destroy(struct tls_channel *channel)
{
    if (!channel)
        return;
    if (channel->session)
        gnutls_deinit(channel->session);
    free(channel->output);
    free(channel);
}

bool tls_channel_is_open(const struct tls_channel *channel)
{
    return channel->is_open;
}

const char *tls_channel_peer(const struct tls_channel *channel)
{
    return channel->peer;
}

/* ---- what ends a connection ---- */

/* An alert of the controller before the channel is open: does it say that the keys differ? */
static bool is_alert_of_key(const struct tls_channel *channel)
{
    gnutls_alert_description_t alert = gnutls_alert_get(channel->session);
    return alert == GNUTLS_A_ILLEGAL_PARAMETER || alert == GNUTLS_A_DECRYPT_ERROR ||
           alert == GNUTLS_A_UNKNOWN_PSK_IDENTITY;
}

/* The peer's byte may be no alert that has a name. */
static const char *name_alert(const struct tls_channel *channel)
{
    const char *name = gnutls_alert_get_name(gnutls_alert_get(channel->session));
    return name ? name : "unknown alert";
}

/* The sentence for a handshake that has failed. */
static int explain_handshake(struct tls_channel *channel, int error, struct fault *fault)
{
    bool is_agent = channel->credentials->is_agent;
    if (is_agent && error == GNUTLS_E_FATAL_ALERT_RECEIVED && is_alert_of_key(channel))
        return fault_set(fault, EACCES,
            "it has another key than this node: copy the file of node-key-file from its machine "
            "to this node, and restart the agent");
    if (!is_agent && *channel->peer && error == GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER)
        return fault_set(fault, EACCES,
            "node %s has another key: copy the file of node-key-file from this machine to the "
            "node, and restart its agent",
            channel->peer);
    return fault_set(fault, EPROTO,
        "it does not speak TLS 1.3 with a shared key (%s): is node-auth tls on both machines?",
        error == GNUTLS_E_FATAL_ALERT_RECEIVED ? name_alert(channel) : gnutls_strerror(error));
}

static int explain_end(struct tls_channel *channel, int error, struct fault *fault)
{
    if (error == GNUTLS_E_MEMORY_ERROR || error == GNUTLS_E_PUSH_ERROR)
        return fault_set(fault, ENOMEM, "out of memory");
    if (is_too_long(channel))
        return fault_set(fault, EMSGSIZE, "more than %d bytes without a proof of the key",
            (int)TLS_HANDSHAKE_MAX);
    if (!channel->is_open)
        return explain_handshake(channel, error, fault);
    if (error == 0 || error == GNUTLS_E_FATAL_ALERT_RECEIVED)
        return fault_set(fault, ECONNRESET, "it closed the connection");
    return fault_set(fault, EPROTO, "TLS: %s: it was altered on its way", gnutls_strerror(error));
}

/* The alert that says why goes to the peer, as far as there is one. */
static int fail_session(struct tls_channel *channel, int error, struct fault *fault)
{
    if (error != 0 && error != GNUTLS_E_FATAL_ALERT_RECEIVED)
        gnutls_alert_send_appropriate(channel->session, error);
    return explain_end(channel, error, fault);
}

/* ---- reading and writing ---- */

/* Returns 0: it is open or needs more input; or as tls_channel_read. */
static int continue_handshake(struct tls_channel *channel, struct fault *fault)
{
    int r;
    do
        r = gnutls_handshake(channel->session);
    while (r < 0 && !gnutls_error_is_fatal(r) && channel->input_size > 0);
    if (r < 0 && gnutls_error_is_fatal(r))
        return fail_session(channel, r, fault);
    channel->is_open = r == 0;
    return 0;
}

ssize_t tls_channel_read(struct tls_channel *channel, void *room, size_t size, struct fault *fault)
{
    ssize_t n;
    if (!channel->is_open) {
        int r = continue_handshake(channel, fault);
        if (r < 0 || !channel->is_open)
            return r;
    }
    do
        n = gnutls_record_recv(channel->session, room, size);
    while (n < 0 && !gnutls_error_is_fatal((int)n) && channel->input_size > 0);
    if (n > 0)
        return n;
    return n < 0 && !gnutls_error_is_fatal((int)n) ? 0 : fail_session(channel, (int)n, fault);
}

int tls_channel_write(struct tls_channel *channel, const void *text, size_t size)
{
    const char *at = text;
    while (size > 0) {
        ssize_t n = gnutls_record_send(channel->session, at, size);
        if (n < 0)
            return -ENOMEM; /* the only error of a push into memory */
        at += n;
        size -= (size_t)n;
    }
    return 0;
}
