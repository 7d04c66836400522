/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines out of a stream of bytes. The memory grows with what came, up to a bound:
 *
 *     uv_read_start(stream, line_buffer_on_room, on_read);    stream->data begins with the buffer
 *     ... libuv reads n bytes and calls on_read, with UV_ENOBUFS where the line is too long ...
 *     line = line_buffer_add(&buffer, n);         NULL: not complete yet
 *     ... use the line ...
 *     line = line_buffer_next(&buffer);           the next one, if it came too
 */
#ifndef COLLOC_NODELINK_LINE_BUFFER_H
#define COLLOC_NODELINK_LINE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

/* Start with {0} and `max`, in bytes. */
struct line_buffer {
    size_t max;
    char *text;
    size_t used, capacity;
    size_t line_size; /* of the complete line at the front, with its end; 0: none */
};

/* Releases the memory; the buffer is empty, with its `max`. */
void line_buffer_fini(struct line_buffer *buffer);

/*
 * Gives libuv room for bytes to come (a uv_alloc_cb).
 *
 * handle:    its data is the line buffer, or a struct whose first member is the line buffer
 * suggested: is not used
 * ret_room:  of length 0 when the line is too long or memory is out; libuv then reports UV_ENOBUFS
 */
void line_buffer_on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_room);

/* `n` bytes came. Returns the line at the front without its end, NUL-terminated and valid until the
 * next call; NULL: there is none yet. */
char *line_buffer_add(struct line_buffer *buffer, size_t n);

/* Removes the line at the front. Returns the next one as line_buffer_add does. */
char *line_buffer_next(struct line_buffer *buffer);

#endif
