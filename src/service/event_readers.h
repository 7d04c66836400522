/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of a stream of server-sent events: open web pages, and programs that follow. Who uses
 * them makes the events and says how far each reader is; here they come, are counted, and leave.
 */
#ifndef COLLOC_SERVICE_EVENT_READERS_H
#define COLLOC_SERVICE_EVENT_READERS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/request.h"
#include "api/stream.h"

struct event_reader {
    struct event_readers *readers;
    struct api_stream *stream;
    uid_t uid;
    int64_t place; /* up to where it has the events, in numbers of who uses it */
    uint64_t turn; /* of who uses it: when it was last served */
    struct event_reader *next, **link;
};

/* Filled by who uses it, with `first` NULL. It must not move while there are readers. */
struct event_readers {
    struct event_reader *first;
    int max, per_user_max;
    void (*on_left)(void *context); /* a reader has left; it is called once for each */
    void *context;
};

/* Returns whether there are too many of all users, or of this one. */
bool event_readers_are_full(const struct event_readers *readers, uid_t uid);

/* Answers a request with a stream. Returns its reader, which is released when the stream ends;
 * NULL: the request is answered otherwise (api_reply_stream), or with 500 when memory is out. */
struct event_reader *event_readers_add(
    struct event_readers *readers, struct api_request *request, int64_t place);

#endif
