/* SPDX-License-Identifier: Apache-2.0 */
/* Event files of TensorBoard: the scalars of one tag. */
#ifndef COLLOC_CLI_EVENT_RECORDS_H
#define COLLOC_CLI_EVENT_RECORDS_H

#include <stddef.h>
#include <stdint.h>

/* A value of the tag. */
struct event_scalar {
    double time_s; /* since 1970 */
    int64_t step;
    double value;
};

struct event_visitor {
    void *context;
    void (*on_scalar)(void *context, const struct event_scalar *scalar);
};

/* The length of a record's head, before its event; and of what follows that. */
enum { EVENT_HEAD_SIZE = 12, EVENT_TAIL_SIZE = 4 };

/* Reads the head of a record. Returns 0, or -EBADMSG when its checksum is another one: the file is
 * no event file, or damaged. */
int event_head_read(const unsigned char head[EVENT_HEAD_SIZE], uint64_t *ret_event_size);

/*
 * Reads the event that follows a head.
 *
 * data: `size` bytes of the event, and EVENT_TAIL_SIZE bytes
 *
 * Returns 0, or -EBADMSG: its checksum or encoding is wrong.
 */
int event_read(
    const unsigned char *data, size_t size, const char *tag, const struct event_visitor *visitor);

/* The same of an event without its checksum, `size` bytes. */
int event_fields_read(
    const unsigned char *data, size_t size, const char *tag, const struct event_visitor *visitor);

#endif
