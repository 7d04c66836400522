/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers without an end, such as the events for a web page. libmicrohttpd asks for the next bytes
 * of a stream whenever the socket accepts some. When there is no piece to send, the connection is
 * suspended until the next one comes, so that an idle stream costs nothing. While a piece is being
 * sent, the server's idle timeout applies: it closes the connection of a reader that has stopped
 * reading.
 */
#include "api/stream.h"

#include <stdlib.h>
#include <string.h>

#include "api/server_private.h"
#include "base/list.h"

#define BLOCK_BYTES ((size_t)(32 * KIB)) /* the most bytes that libmicrohttpd asks for at a time */

struct api_piece {
    size_t holds, size;
    char data[];
};

struct api_stream {
    struct MHD_Connection *connection;
    struct api_server *server;
    struct api_piece *piece; /* being sent; NULL: idle */
    size_t sent;
    bool is_suspended;
    void (*on_closed)(void *context);
    void *context;
    struct api_stream *next, **link; /* in server->streams */
};

struct api_piece *api_piece_create(const void *data, size_t size)
{
    struct api_piece *piece = malloc(sizeof *piece + size);
    if (!piece)
        return NULL;
    piece->holds = 1;
    piece->size = size;
    memcpy(piece->data, data, size);
    return piece;
}

void api_piece_release(struct api_piece *piece)
{
    if (piece && --piece->holds == 0)
        free(piece);
}

/* libmicrohttpd's callback: the next bytes. */
static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t size)
{
    struct api_stream *stream = context;
    if (stream->server->is_stopping)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!stream->piece) {
        if (!stream->is_suspended)
            MHD_suspend_connection(stream->connection);
        stream->is_suspended = true;
        return 0;
    }
    size_t left = stream->piece->size - stream->sent, n = left < size ? left : size;
    memcpy(buffer, stream->piece->data + stream->sent, n);
    stream->sent += n;
    if (n == left) {
        api_piece_release(stream->piece);
        stream->piece = NULL;
    }
    return (ssize_t)n;
}

/* libmicrohttpd's callback: the response is no longer used. */
static void free_stream(void *context)
{
    struct api_stream *stream = context;
    LIST_UNLINK(stream);
    stream->on_closed(stream->context);
    api_piece_release(stream->piece);
    free(stream);
}

struct api_stream *api_reply_stream(
    struct api_request *request, const char *type, void (*on_closed)(void *context), void *context)
{
    if (request->is_signed) {
        api_reply_error(request, 409, "events are not sent to other machines");
        return NULL;
    }
    struct api_stream *stream = calloc(1, sizeof *stream);
    struct MHD_Response *response = stream ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN,
                                                 BLOCK_BYTES, read_stream, stream, free_stream)
                                           : NULL;
    if (!response) {
        free(stream);
        api_reply(request, 500, NULL);
        return NULL;
    }
    *stream = (struct api_stream){.connection = request->connection,
        .server = request->server,
        .on_closed = on_closed,
        .context = context};
    LIST_PREPEND(&request->server->streams, stream);
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    reply_response(request, 200, response);
    return stream;
}

bool api_stream_is_idle(const struct api_stream *stream)
{
    return !stream->piece;
}

static void resume_stream(struct api_stream *stream)
{
    if (stream->is_suspended)
        MHD_resume_connection(stream->connection);
    stream->is_suspended = false;
}

void api_stream_send(struct api_stream *stream, struct api_piece *piece)
{
    piece->holds++;
    stream->piece = piece;
    stream->sent = 0;
    resume_stream(stream);
}

void streams_end(struct api_server *server)
{
    for (struct api_stream *stream = server->streams; stream; stream = stream->next)
        resume_stream(stream);
}
