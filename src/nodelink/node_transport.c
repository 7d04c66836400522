/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the clear libuv reads into the line buffer. Within TLS it reads into a block that lives until
 * it was decrypted into the line buffer, as far as the owner wants it; what TLS itself has to say
 * to the peer is sent after each step. All of this happens in the loop: a report costs TLS some
 * microseconds (docs/measured/slurm.md), a handshake a quarter of a millisecond.
 */
#include "nodelink/node_transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_SIZE = 16 * 1024 }; /* chosen: a report of 32 GPUs */

struct write {
    uv_write_t request;
    void *bytes; /* owned */
};

static bool is_closing(const struct node_transport *transport)
{
    return uv_is_closing((const uv_handle_t *)&transport->tcp);
}

static void end_transport(struct node_transport *transport, enum transport_end end, const char *why)
{
    if (!is_closing(transport))
        transport->hooks->on_end(transport, end, why);
}

/* ---- writing ---- */

static void on_written(uv_write_t *request, int status)
{
    struct write *write = request->data;
    free(write->bytes);
    free(write);
}

/* Takes `bytes` over. What the peer does not take at once is sent from the loop. */
static int write_bytes(struct node_transport *transport, void *bytes, size_t n)
{
    uv_buf_t buffer = uv_buf_init(bytes, (unsigned)n);
    struct write *write = bytes ? malloc(sizeof *write) : NULL;
    if (!write) {
        free(bytes);
        return -ENOMEM;
    }
    *write = (struct write){.request.data = write, .bytes = bytes};
    int r = uv_write(&write->request, (uv_stream_t *)&transport->tcp, &buffer, 1, on_written);
    if (r < 0)
        on_written(&write->request, r);
    return 0;
}

/* Sends what TLS has for the peer. */
static int flush_tls(struct node_transport *transport)
{
    size_t n;
    void *output = tls_channel_take_output(transport->tls, &n);
    return output ? write_bytes(transport, output, n) : 0;
}

static int send_within_tls(struct node_transport *transport, const char *line, size_t size)
{
    if (tls_channel_write(transport->tls, line, size) < 0)
        return -ENOMEM;
    return flush_tls(transport);
}

int node_transport_send(struct node_transport *transport, const char *line)
{
    size_t size = strlen(line);
    char *text = malloc(size + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, line, size);
    text[size] = '\n';
    if (!transport->tls)
        return write_bytes(transport, text, size + 1);
    int r = send_within_tls(transport, text, size + 1);
    free(text);
    return r;
}

size_t node_transport_unsent(const struct node_transport *transport)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&transport->tcp);
}

/* ---- reading ---- */

static void take_text(struct node_transport *transport, size_t n)
{
    char *line = line_buffer_add(&transport->input, n);
    if (line)
        transport->hooks->on_line(transport, line);
}

/* A record of TLS begins so, and no signed line does. */
static bool is_tls(char first)
{
    return first == 0x16 || first == 0x15;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *room)
{
    struct node_transport *transport = stream->data;
    if (n == 0)
        return;
    if (n < 0) {
        end_transport(transport, n == UV_ENOBUFS ? TRANSPORT_TOO_LONG : TRANSPORT_GONE,
            n == UV_EOF ? "it closed the connection" : uv_strerror((int)n));
        return;
    }
    bool is_first = !transport->has_read;
    transport->has_read = true;
    if (is_first && is_tls(*room->base))
        end_transport(
            transport, TRANSPORT_REFUSED, "it speaks TLS: is node-auth munge on both machines?");
    else
        take_text(transport, (size_t)n);
}

static void open_transport(struct node_transport *transport)
{
    transport->is_open = true;
    if (transport->hooks->on_open)
        transport->hooks->on_open(transport);
}

static void end_tls(struct node_transport *transport, int error, const char *why)
{
    end_transport(transport, error == -ECONNRESET ? TRANSPORT_GONE : TRANSPORT_REFUSED, why);
}

/* Decrypts into the line buffer until all was used that came. */
static void continue_tls(struct node_transport *transport)
{
    struct fault fault = {0};
    ssize_t n;
    do {
        uv_buf_t room;
        line_buffer_on_room((uv_handle_t *)&transport->tcp, 0, &room);
        if (room.len == 0) {
            end_transport(transport, TRANSPORT_TOO_LONG, uv_strerror(UV_ENOBUFS));
            return;
        }
        n = tls_channel_read(transport->tls, room.base, room.len, &fault);
        int sent = flush_tls(transport);
        if (!transport->is_open && tls_channel_is_open(transport->tls))
            open_transport(transport);
        if (is_closing(transport))
            return;
        if (n > 0)
            take_text(transport, (size_t)n);
        else if (n < 0 || sent < 0)
            end_tls(transport, n < 0 ? (int)n : sent, n < 0 ? fault.text : "out of memory");
    } while (n > 0 && !transport->is_paused && !is_closing(transport));
}

static void on_block(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_room)
{
    ret_room->base = malloc(BLOCK_SIZE);
    ret_room->len = ret_room->base ? BLOCK_SIZE : 0;
}

static void on_read_tls(uv_stream_t *stream, ssize_t n, const uv_buf_t *room)
{
    struct node_transport *transport = stream->data;
    if (n > 0) {
        tls_channel_take(transport->tls, room->base, (size_t)n);
        continue_tls(transport);
        tls_channel_take(transport->tls, NULL, 0);
    } else if (n == UV_EOF && !transport->is_open) {
        end_transport(transport, TRANSPORT_GONE,
            "it closed the connection during the handshake of TLS: is node-auth tls there, too?");
    } else if (n < 0) {
        end_transport(transport, TRANSPORT_GONE,
            n == UV_EOF ? "it closed the connection" : uv_strerror((int)n));
    }
    free(room->base);
}

void node_transport_pause(struct node_transport *transport)
{
    transport->is_paused = true;
    uv_read_stop((uv_stream_t *)&transport->tcp);
}

void node_transport_resume(struct node_transport *transport)
{
    uv_stream_t *stream = (uv_stream_t *)&transport->tcp;
    transport->is_paused = false;
    if (is_closing(transport))
        return;
    if (transport->tls)
        uv_read_start(stream, on_block, on_read_tls);
    else
        uv_read_start(stream, line_buffer_on_room, on_read);
}

char *node_transport_next_line(struct node_transport *transport)
{
    return line_buffer_next(&transport->input);
}

/* ---- its life ---- */

int node_transport_init(struct node_transport *transport, uv_loop_t *loop,
    const struct tls_credentials *credentials, size_t line_max,
    const struct node_transport_hooks *hooks, void *owner)
{
    *transport = (struct node_transport){
        .input = {.max = line_max}, .hooks = hooks, .owner = owner};
    uv_tcp_init(loop, &transport->tcp);
    transport->tcp.data = transport;
    transport->tls = credentials ? tls_channel_create(credentials) : NULL;
    return credentials && !transport->tls ? -ENOMEM : 0;
}

void node_transport_start(struct node_transport *transport)
{
    node_transport_resume(transport);
    if (transport->tls)
        continue_tls(transport); /* an agent's first message */
    else
        open_transport(transport);
}

bool node_transport_is_proven(const struct node_transport *transport)
{
    return transport->tls && transport->is_open;
}

static void on_closed(uv_handle_t *handle)
{
    struct node_transport *transport = handle->data;
    transport->hooks->on_closed(transport);
}

void node_transport_close(struct node_transport *transport)
{
    if (!is_closing(transport))
        uv_close((uv_handle_t *)&transport->tcp, on_closed);
}

void node_transport_fini(struct node_transport *transport)
{
    line_buffer_fini(&transport->input);
    tls_channel_destroy(transport->tls);
    transport->tls = NULL;
}
