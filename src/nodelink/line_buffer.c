/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a stream of bytes into lines. The front of the memory holds the current line; what follows
 * it moves to the front when the line has been used. Only new bytes are searched for a line end. */
#include "nodelink/line_buffer.h"

#include <stdlib.h>
#include <string.h>

enum { START_SIZE = 4096 };

void line_buffer_fini(struct line_buffer *buffer)
{
    free(buffer->text);
    *buffer = (struct line_buffer){.max = buffer->max};
}

void line_buffer_on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_room)
{
    struct line_buffer *buffer = handle->data;
    if (buffer->used == buffer->capacity && buffer->capacity < buffer->max) {
        size_t wanted = buffer->capacity ? 2 * buffer->capacity : START_SIZE;
        if (wanted > buffer->max)
            wanted = buffer->max;
        char *text = realloc(buffer->text, wanted);
        if (text) {
            buffer->text = text;
            buffer->capacity = wanted;
        }
    }
    ret_room->base = buffer->text ? buffer->text + buffer->used : NULL;
    ret_room->len = buffer->capacity - buffer->used;
}

/* Searches from `from`. */
static char *find_line(struct line_buffer *buffer, size_t from)
{
    size_t n = buffer->used - from;
    char *end = n ? memchr(buffer->text + from, '\n', n) : NULL;
    if (!end)
        return NULL;
    *end = '\0';
    buffer->line_size = (size_t)(end - buffer->text) + 1;
    return buffer->text;
}

char *line_buffer_add(struct line_buffer *buffer, size_t n)
{
    size_t from = buffer->used;
    buffer->used += n;
    if (buffer->line_size)
        return buffer->text;
    return find_line(buffer, from);
}

char *line_buffer_next(struct line_buffer *buffer)
{
    if (buffer->line_size) {
        buffer->used -= buffer->line_size;
        memmove(buffer->text, buffer->text + buffer->line_size, buffer->used);
        buffer->line_size = 0;
    }
    return find_line(buffer, 0);
}
