/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends open web pages what ended, and when to read the lists again.
 *
 * All readers get the same piece of "reset". One that has not taken the last piece yet is left out;
 * if that was of jobs that have ended, its next "reset" says that all lists are to be read. So does
 * its first one. The timer runs, and jobs are compared, while there is a reader.
 */
#include "slurm/slurm_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/event_readers.h"
#include "slurm/ended_jobs.h"

enum {
    PERIOD_MS = 3000, /* chosen: each reader then requests three lists */
    READERS_MAX = 128,
    READERS_PER_USER = 16, /* pages that a user has open */
    ENDED_MAX = 1000,      /* jobs in an event; chosen: more are a reason to read the lists */
};

/* A reader's place: it knows of all jobs that have ended, or it does not. */
enum { PLACE_WHOLE, PLACE_BEHIND };

struct slurm_events {
    uv_timer_t timer;
    const struct slurm_controller *controller;
    void (*on_event)(void *context);
    void *context;
    struct api_piece *reset, *reset_all;
    struct ended_jobs jobs;
    struct event_readers readers;
};

/* Returns NULL when memory is out. */
static struct api_piece *make_piece(const char *name, const char *data)
{
    char *text;
    if (!data || asprintf(&text, "event: %s\ndata: %s\n\n", name, data) < 0)
        return NULL;
    struct api_piece *piece = api_piece_create(text, strlen(text));
    free(text);
    return piece;
}

static void on_left(void *context)
{
    struct slurm_events *events = context;
    if (events->readers.first)
        return;
    uv_timer_stop(&events->timer);
    ended_jobs_fini(&events->jobs);
}

struct slurm_events *slurm_events_create(uv_loop_t *loop, const struct slurm_controller *controller,
    void (*on_event)(void *context), void *context)
{
    struct slurm_events *events = calloc(1, sizeof *events);
    if (!events)
        return NULL;
    *events = (struct slurm_events){.controller = controller,
        .on_event = on_event,
        .context = context,
        .readers = {NULL, READERS_MAX, READERS_PER_USER, on_left, events},
        .reset = make_piece("reset", "{}"),
        .reset_all = make_piece("reset", "{\"all\": true}")};
    if (!events->reset || !events->reset_all) {
        api_piece_release(events->reset);
        api_piece_release(events->reset_all);
        free(events);
        return NULL;
    }
    uv_timer_init(loop, &events->timer);
    events->timer.data = events;
    return events;
}

static void send_reset(const struct slurm_events *events, struct event_reader *reader)
{
    bool is_behind = reader->place == PLACE_BEHIND;
    api_stream_send(reader->stream, is_behind ? events->reset_all : events->reset);
    reader->place = PLACE_WHOLE;
}

static void on_time(uv_timer_t *timer)
{
    struct slurm_events *events = timer->data;
    for (struct event_reader *reader = events->readers.first; reader; reader = reader->next)
        if (api_stream_is_idle(reader->stream))
            send_reset(events, reader);
    events->on_event(events->context);
}

/* ---- jobs that have ended ---- */

static void send_ended(const struct slurm_events *events, struct event_reader *reader)
{
    const struct cluster_asker asker = {.uid = reader->uid};
    struct api_piece *piece = NULL;
    size_t n = ended_jobs_count(&events->jobs, events->controller, &asker);
    if (n == 0)
        return;
    if (n <= ENDED_MAX && api_stream_is_idle(reader->stream)) {
        json_t *object = ended_jobs_json(&events->jobs, events->controller, &asker);
        char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
        piece = make_piece("ended", text);
        free(text);
        json_decref(object);
    }
    if (piece)
        api_stream_send(reader->stream, piece);
    else
        reader->place = PLACE_BEHIND;
    api_piece_release(piece);
}

void slurm_events_updated(struct slurm_events *events)
{
    if (!events->readers.first)
        return;
    bool is_known = ended_jobs_update(&events->jobs, events->controller) == 0;
    if (is_known && events->jobs.n_ended == 0)
        return;
    for (struct event_reader *reader = events->readers.first; reader; reader = reader->next) {
        if (!is_known)
            reader->place = PLACE_BEHIND;
        send_ended(events, reader);
    }
    events->on_event(events->context);
}

/* ---- readers ---- */

void slurm_events_follow(struct slurm_events *events, struct api_request *request)
{
    bool is_first = !events->readers.first;
    if (event_readers_are_full(&events->readers, api_request_peer(request).uid)) {
        api_reply_error(request, 503, "too many readers follow the events: close some pages");
        return;
    }
    struct event_reader *reader = event_readers_add(&events->readers, request, PLACE_BEHIND);
    if (!reader)
        return;
    if (is_first)
        ended_jobs_update(&events->jobs, events->controller); /* with which to compare the next */
    send_reset(events, reader);
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
    api_piece_release(events->reset_all);
    ended_jobs_fini(&events->jobs);
    free(events);
}
