/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endless answers, sent piece by piece: for server-sent events.
 *
 * Contract:
 *   1. A stream holds at most one unsent piece, so that a slow reader cannot make it grow: the
 *      sender calls api_stream_is_idle before each piece.
 *   2. A piece is shared by all streams that send it, and freed when the last has sent it.
 *   3. `on_closed` is called once, when the connection has ended or the server is destroyed; the
 *      stream is freed when it returns.
 */
#ifndef COLLOC_API_STREAM_H
#define COLLOC_API_STREAM_H

#include "api/request.h"

struct api_stream;

/* Bytes to be sent. */
struct api_piece;

/* Copies `size` bytes. Returns NULL when memory is out; else for api_piece_release. */
struct api_piece *api_piece_create(const void *data, size_t size);

/* Releases the creator's reference. NULL is allowed. */
void api_piece_release(struct api_piece *piece);

/*
 * Answers a request, which its handler has not answered yet, with a stream.
 *
 * type: Content-Type
 *
 * Returns NULL, and has answered the request otherwise: with 500 when memory is out, with 409 where
 * answers are signed, because one without an end cannot be.
 */
struct api_stream *api_reply_stream(
    struct api_request *request, const char *type, void (*on_closed)(void *context), void *context);

/* Can it take a piece? */
bool api_stream_is_idle(const struct api_stream *stream);

/* Sends a piece of an idle stream, with the next api_server_run. */
void api_stream_send(struct api_stream *stream, struct api_piece *piece);

#endif
