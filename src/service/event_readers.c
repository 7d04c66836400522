/* SPDX-License-Identifier: Apache-2.0 */
/* A list from which a reader removes itself when its stream is closed. */
#include "service/event_readers.h"

#include <stdlib.h>

#include "base/list.h"

bool event_readers_are_full(const struct event_readers *readers, uid_t uid)
{
    int all = 0, own = 0;
    for (const struct event_reader *reader = readers->first; reader; reader = reader->next) {
        all++;
        own += reader->uid == uid;
    }
    return all >= readers->max || own >= readers->per_user_max;
}

static void on_closed(void *context)
{
    struct event_reader *reader = context;
    struct event_readers *readers = reader->readers;
    LIST_UNLINK(reader);
    free(reader);
    readers->on_left(readers->context);
}

struct event_reader *event_readers_add(
    struct event_readers *readers, struct api_request *request, int64_t place)
{
    struct event_reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        api_reply(request, 500, NULL);
        return NULL;
    }
    *reader = (struct event_reader){
        .readers = readers, .uid = api_request_peer(request).uid, .place = place};
    reader->stream = api_reply_stream(request, "text/event-stream", on_closed, reader);
    if (!reader->stream) {
        free(reader);
        return NULL;
    }
    LIST_PREPEND(&readers->first, reader);
    return reader;
}
