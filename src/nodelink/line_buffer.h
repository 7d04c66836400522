/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines out of a stream of bytes. The memory grows with what came, up to a bound:
 *
 *     line_buffer_room(&buffer, &room, &size);    where the next bytes go; size 0: too long
 *     ... read n bytes to `room` ...
 *     line = line_buffer_add(&buffer, n);         NULL: not complete yet
 *     ... use the line ...
 *     line = line_buffer_next(&buffer);           the next one, if it came too
 */
#ifndef COLLOC_NODELINK_LINE_BUFFER_H
#define COLLOC_NODELINK_LINE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* Start with {0} and `max`, in bytes. */
struct line_buffer {
    size_t max;
    char *text;
    size_t used, capacity;
    size_t line_size; /* of the complete line at the front, with its end; 0: none */
};

void line_buffer_fini(struct line_buffer *buffer);

/* Gives room for bytes to come. `ret_size` is 0 when the line is too long or memory is out. */
void line_buffer_room(struct line_buffer *buffer, char **ret_room, size_t *ret_size);

/* `n` bytes came. Returns the line at the front without its end, NUL-terminated and valid until the
 * next call; NULL: there is none yet. */
char *line_buffer_add(struct line_buffer *buffer, size_t n);

/* Removes the line at the front. Returns the next one as line_buffer_add does. */
char *line_buffer_next(struct line_buffer *buffer);

#endif
