/* SPDX-License-Identifier: Apache-2.0 */
/* Sends "read the lists again" to open web pages. All readers get the same piece; one that has not
 * taken the last one yet is left out. The timer runs while there is a reader. */
#include "slurm/slurm_events.h"

#include <stdlib.h>

#include "api/stream.h"

enum {
    PERIOD_MS = 3000, /* chosen: each reader then asks for three lists */
    READERS_MAX = 128,
    READERS_PER_USER = 16, /* pages that a user has open */
};

struct reader {
    struct slurm_events *events;
    struct api_stream *stream;
    uid_t uid;
    struct reader *next, **link;
};

struct slurm_events {
    uv_timer_t timer;
    void (*on_event)(void *context);
    void *context;
    struct api_piece *reset;
    struct reader *readers;
};

struct slurm_events *slurm_events_create(
    uv_loop_t *loop, void (*on_event)(void *context), void *context)
{
    static const char text[] = "event: reset\ndata: {}\n\n";
    struct slurm_events *events = calloc(1, sizeof *events);
    if (!events)
        return NULL;
    *events = (struct slurm_events){
        .on_event = on_event, .context = context, .reset = api_piece_create(text, sizeof text - 1)};
    if (!events->reset) {
        free(events);
        return NULL;
    }
    uv_timer_init(loop, &events->timer);
    events->timer.data = events;
    return events;
}

static void on_time(uv_timer_t *timer)
{
    struct slurm_events *events = timer->data;
    for (struct reader *reader = events->readers; reader; reader = reader->next)
        if (api_stream_is_idle(reader->stream))
            api_stream_send(reader->stream, events->reset);
    events->on_event(events->context);
}

static void on_closed(void *context)
{
    struct reader *reader = context;
    struct slurm_events *events = reader->events;
    *reader->link = reader->next;
    if (reader->next)
        reader->next->link = reader->link;
    free(reader);
    if (!events->readers)
        uv_timer_stop(&events->timer);
}

static bool is_full(const struct slurm_events *events, uid_t uid)
{
    int all = 0, own = 0;
    for (const struct reader *reader = events->readers; reader; reader = reader->next) {
        all++;
        own += reader->uid == uid;
    }
    return all >= READERS_MAX || own >= READERS_PER_USER;
}

void slurm_events_follow(struct slurm_events *events, struct api_request *request)
{
    uid_t uid = api_request_peer(request).uid;
    if (is_full(events, uid)) {
        api_reply_error(request, 503, "too many readers follow the events: close some pages");
        return;
    }
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        api_reply(request, 500, NULL);
        return;
    }
    *reader = (struct reader){
        .events = events, .uid = uid, .next = events->readers, .link = &events->readers};
    reader->stream = api_reply_stream(request, "text/event-stream", on_closed, reader);
    if (!reader->stream) {
        free(reader);
        return;
    }
    if (reader->next)
        reader->next->link = &reader->next;
    events->readers = reader;
    api_stream_send(reader->stream, events->reset);
    if (!uv_is_active((uv_handle_t *)&events->timer))
        uv_timer_start(&events->timer, on_time, PERIOD_MS, PERIOD_MS);
}

void slurm_events_close(struct slurm_events *events)
{
    if (events)
        uv_close((uv_handle_t *)&events->timer, NULL);
}

void slurm_events_destroy(struct slurm_events *events)
{
    if (!events)
        return;
    api_piece_release(events->reset);
    free(events);
}
