/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connect, write the request, read until the reply is complete, close. Each step calls the next;
 * whatever fails ends the probe without an answer. The memory is released when the loop has closed
 * the connection.
 */
#include "daemon/services/http_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/services/http_reply.h"

/* Chosen: a reply that is longer is no answer to a probe. */
#define REPLY_BYTES_MAX ((size_t)1 << 20)

struct http_probe {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    http_probe_done *done; /* NULL: it was stopped, or has ended */
    void *context;
    int64_t began_us;
    size_t received;
    struct http_reply reply;
    char request[512], buffer[4096];
};

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void end_probe(struct http_probe *probe, bool has_answered)
{
    http_probe_done *done = probe->done;
    probe->done = NULL;
    if (!uv_is_closing((uv_handle_t *)&probe->tcp))
        uv_close((uv_handle_t *)&probe->tcp, on_closed);
    if (done)
        done(probe->context, has_answered, clock_monotonic_us() - probe->began_us);
}

void http_probe_stop(struct http_probe *probe)
{
    if (!probe)
        return;
    probe->done = NULL;
    end_probe(probe, false);
}

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct http_probe *probe = handle->data;
    *ret_buffer = uv_buf_init(probe->buffer, sizeof probe->buffer);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct http_probe *probe = stream->data;
    if (n == 0)
        return;
    if (n < 0) {
        end_probe(probe, n == UV_EOF && http_reply_ends(&probe->reply));
        return;
    }
    probe->received += (size_t)n;
    enum http_reply_state state = http_reply_take(&probe->reply, buffer->base, (size_t)n);
    if (state != HTTP_REPLY_MORE || probe->received > REPLY_BYTES_MAX)
        end_probe(probe, state == HTTP_REPLY_DONE);
}

static void on_written(uv_write_t *write, int status)
{
    struct http_probe *probe = write->data;
    if (status < 0 && status != UV_ECANCELED)
        end_probe(probe, false);
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct http_probe *probe = connect->data;
    uv_buf_t request = uv_buf_init(probe->request, (unsigned)strlen(probe->request));
    if (status == UV_ECANCELED)
        return;
    if (status < 0 || uv_read_start((uv_stream_t *)&probe->tcp, give_buffer, on_read) < 0 ||
        uv_write(&probe->write, (uv_stream_t *)&probe->tcp, &request, 1, on_written) < 0)
        end_probe(probe, false);
}

struct http_probe *http_probe_start(
    uv_loop_t *loop, int port, const char *path, http_probe_done *done, void *context)
{
    struct sockaddr_in address;
    struct http_probe *probe = calloc(1, sizeof *probe);
    if (!probe)
        return NULL;
    if (uv_tcp_init(loop, &probe->tcp) < 0) {
        free(probe);
        return NULL;
    }
    probe->tcp.data = probe->connect.data = probe->write.data = probe;
    probe->context = context;
    probe->began_us = clock_monotonic_us();
    snprintf(probe->request, sizeof probe->request,
        "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: colloc\r\nConnection: close\r\n\r\n",
        path, port);
    uv_ip4_addr("127.0.0.1", port, &address);
    if (uv_tcp_connect(
            &probe->connect, &probe->tcp, (const struct sockaddr *)&address, on_connected) < 0) {
        end_probe(probe, false);
        return NULL;
    }
    probe->done = done;
    return probe;
}
