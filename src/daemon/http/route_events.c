/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/events: server-sent events for pages and programs that follow the changes.
 *
 *     id: 4711                     the event log's number
 *     event: tasks                 these tasks have changed
 *     data: {"tasks":[TASK, ...]}
 *
 *     event: gpus                  what the GPUs do now; once a second
 *     data: {"gpus":[...],"queued":3,"running":5}
 *
 *     id: 4711
 *     event: reset                 read the lists again: too much has changed since the last event
 *     data: {}
 *
 * Once a second each reader that has received everything so far gets the changes. The text for all
 * readers is written once and shared. A slow reader misses seconds, and then gets the changes since
 * its last event: the tasks with later events in the log. So does a reader that reconnects with
 * Last-Event-ID, also to another daemon over the same log. Such a text takes up to 30 ms, so these
 * readers have their turn one after the other, and other requests between them.
 *
 * Every reader gets a task as users other than its owner may see it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/units.h"
#include "daemon/attempt_list.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/public_json.h"
#include "daemon/http/routes.h"
#include "service/event_readers.h"

#define PERIOD_MS        1000
#define TASKS_MAX        200   /* in one event; more is a reset; chosen: half a megabyte */
#define EVENTS_MAX       10000 /* in the log that are searched for one reader */
#define CATCHING_UP_MS   20    /* between two readers that missed something; chosen */
#define READERS_PER_USER 64
#define READERS_MAX      512

/* A reader's place is the number of the last event that it got, or that it did not need;
 * -1: none. */
struct event_feed {
    struct http *http;
    struct event_readers readers;
    uv_timer_t timer, catching_up; /* the second for those that missed something */
    int64_t seq;                   /* at the last turn */
    uint64_t turns;                /* given so far, and readers that came */
    int timers;                    /* that are not closed */
    bool is_closed;
};

/* ---- pieces ---- */

static void write_event(FILE *out, const char *name, json_t *data)
{
    fprintf(out, "event: %s\ndata: ", name);
    json_dumpf(data, out, API_JSON_FLAGS);
    fputs("\n\n", out);
    json_decref(data);
}

/* A task as all users may see it; NULL: it is forgotten. */
static json_t *find_public_record(struct http *http, uint64_t id)
{
    const struct task *task = core_task(http->parts.core, id);
    json_t *record = NULL;
    if (task)
        return http_record_public(http_task_json(http, task));
    if (store_get_ended(http->parts.store, id, NULL, &record) != 0)
        return NULL;
    attempt_list_upgrade(record);
    return http_record_public(record);
}

/* Was an array submitted? Its tasks have no events yet. */
static bool is_array(struct http *http, uint64_t id)
{
    uint64_t first, last;
    return !core_task(http->parts.core, id) &&
           store_get_array(http->parts.store, id, NULL, &first, &last) == 0;
}

/* The tasks that have changed after `seq`, or a reset. */
static void write_changes(struct http *http, int64_t seq, int64_t now, FILE *out)
{
    uint64_t changed[TASKS_MAX];
    size_t n = TASKS_MAX;
    bool is_reset = seq < 0 || seq > now || now - seq > EVENTS_MAX ||
                    store_changed_tasks(http->parts.store, seq, TASKS_MAX, NULL, changed, &n) < 0 ||
                    n == TASKS_MAX;
    for (size_t i = 0; i < n && !is_reset; i++)
        is_reset = is_array(http, changed[i]);
    fprintf(out, "id: %" PRId64 "\n", now);
    if (is_reset) {
        write_event(out, "reset", json_object());
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *record = find_public_record(http, changed[i]);
        if (record)
            json_array_append_new(list, record);
    }
    write_event(out, "tasks", json_pack("{s:o}", "tasks", list));
}

/* What changes from sample to sample. */
static json_t *short_gpu(const json_t *gpu)
{
    static const char *const keys[] = {"index", "health", "mem_total_mib", "mem_used_mib", "smact",
        "utilisation", "power_w", "temperature_c", "tasks", "hold_off"};
    json_t *object = json_object();
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        json_object_set(object, keys[i], json_object_get(gpu, keys[i]));
    return object;
}

static void write_gpus(struct http *http, FILE *out)
{
    json_t *all = public_gpus(http), *list = json_array(), *gpu;
    int queued, running;
    size_t i;
    public_counts(http, &queued, &running);
    json_array_foreach(json_object_get(all, "gpus"), i, gpu) {
        json_array_append_new(list, short_gpu(gpu));
    }
    write_event(out, "gpus",
        json_pack("{s:o, s:O, s:i, s:i}", "gpus", list, "sampled_at",
            json_object_get(all, "sampled_at"), "queued", queued, "running", running));
    json_decref(all);
}

/* The changes after `seq` (if there are any) and, if wanted, the GPUs. NULL when memory is out. */
static struct api_piece *make_piece(struct http *http, int64_t seq, int64_t now, bool with_gpus)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    if (seq != now)
        write_changes(http, seq, now, out);
    if (with_gpus)
        write_gpus(http, out);
    bool is_whole = fclose(out) == 0;
    struct api_piece *piece = is_whole ? api_piece_create(text, size) : NULL;
    free(text);
    return piece;
}

/* ---- turns ---- */

/* NULL is ignored: the reader stays where it was. */
static void send_piece(struct event_reader *reader, struct api_piece *piece, int64_t seq)
{
    if (!piece)
        return;
    api_stream_send(reader->stream, piece);
    reader->place = seq;
}

/* The reader that was not up to date at the last turn and has waited longest since its own; NULL:
 * none. One that is ahead of that turn, since it came later, is served with the next one. */
static struct event_reader *next_behind(const struct event_feed *feed)
{
    struct event_reader *next = NULL;
    for (struct event_reader *reader = feed->readers.first; reader; reader = reader->next)
        if (reader->place < feed->seq && api_stream_is_idle(reader->stream) &&
            (!next || reader->turn < next->turn))
            next = reader;
    return next;
}

/* One of these readers gets what it missed, so that other requests are answered between two. */
static void on_catching_up(uv_timer_t *timer)
{
    struct event_feed *feed = timer->data;
    struct event_reader *reader = next_behind(feed);
    if (!reader)
        return;
    struct api_piece *missed = make_piece(feed->http, reader->place, feed->seq, true);
    reader->turn = ++feed->turns;
    send_piece(reader, missed, feed->seq);
    api_piece_release(missed);
    uv_update_time(timer->loop); /* the pause begins now */
    uv_timer_start(timer, on_catching_up, CATCHING_UP_MS, 0);
    http_serve_soon(feed->http);
}

/* Readers that are up to date share one piece. */
static void serve_readers(struct event_feed *feed)
{
    struct http *http = feed->http;
    int64_t before = feed->seq, now = store_last_event(http->parts.store);
    struct api_piece *shared = make_piece(http, before, now, true);
    bool is_any_behind = false;
    for (struct event_reader *reader = feed->readers.first; reader; reader = reader->next) {
        if (!api_stream_is_idle(reader->stream))
            continue;
        if (reader->place == before)
            send_piece(reader, shared, now);
        else
            is_any_behind = true;
    }
    api_piece_release(shared);
    feed->seq = now;
    if (is_any_behind && !uv_is_active((uv_handle_t *)&feed->catching_up))
        uv_timer_start(&feed->catching_up, on_catching_up, 0, 0);
    http_serve_soon(http);
}

static void on_turn(uv_timer_t *timer)
{
    serve_readers(timer->data);
}

/* ---- readers ---- */

/* The readers may be of a server that is destroyed later than the part is closed. */
static void free_when_unused(struct event_feed *feed)
{
    if (feed->timers == 0 && !feed->readers.first)
        free(feed);
}

static void on_left(void *context)
{
    struct event_feed *feed = context;
    if (!feed->readers.first && !feed->is_closed) {
        uv_timer_stop(&feed->timer);
        uv_timer_stop(&feed->catching_up);
    }
    free_when_unused(feed);
}

static struct event_feed *open_feed(struct http *http)
{
    struct event_feed *feed = http->event_feed;
    if (feed)
        return feed;
    feed = calloc(1, sizeof *feed);
    if (!feed)
        return NULL;
    feed->http = http;
    feed->readers = (struct event_readers){NULL, READERS_MAX, READERS_PER_USER, on_left, feed};
    uv_timer_init(http->parts.loop, &feed->timer);
    uv_timer_init(http->parts.loop, &feed->catching_up);
    feed->timer.data = feed->catching_up.data = feed;
    feed->timers = 2;
    return http->event_feed = feed;
}

/* The reader's position: from the header that browsers send, or from `after`. Returns -1 for a new
 * reader, -EINVAL if the text is no number. */
static int64_t read_place(const struct api_request *request)
{
    const char *text = api_request_header(request, "Last-Event-ID");
    int64_t seq;
    if (!text)
        text = api_request_query(request, "after");
    if (!text)
        return -1;
    return parse_int64(text, 0, INT64_MAX, &seq) == 0 ? seq : -EINVAL;
}

void route_events(void *context, struct api_request *request)
{
    struct http *http = context;
    struct event_feed *feed = open_feed(http);
    int64_t seq = read_place(request), now = store_last_event(http->parts.store);
    if (seq == -EINVAL) {
        api_reply_error(request, 400, "Last-Event-ID: must be the id of an event");
        return;
    }
    if (feed && event_readers_are_full(&feed->readers, api_request_peer(request).uid)) {
        api_reply_error(
            request, 503, "too many readers of events: at most %d for each user", READERS_PER_USER);
        return;
    }
    if (!feed) {
        api_reply(request, 500, NULL);
        return;
    }
    bool is_first = !feed->readers.first;
    struct event_reader *reader = event_readers_add(&feed->readers, request, seq);
    if (!reader)
        return;
    reader->turn = ++feed->turns;
    if (is_first) {
        feed->seq = now;
        uv_timer_start(&feed->timer, on_turn, PERIOD_MS, PERIOD_MS);
    }
    if (seq >= 0 && seq < now) { /* it missed something */
        if (!uv_is_active((uv_handle_t *)&feed->catching_up))
            uv_timer_start(&feed->catching_up, on_catching_up, 0, 0);
        return;
    }
    struct api_piece *first = make_piece(http, seq, now, true);
    send_piece(reader, first, now);
    api_piece_release(first);
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct event_feed *feed = timer->data;
    feed->timers--;
    free_when_unused(feed);
}

void events_close(struct http *http)
{
    struct event_feed *feed = http->event_feed;
    if (!feed)
        return;
    feed->is_closed = true;
    http->event_feed = NULL;
    uv_close((uv_handle_t *)&feed->timer, on_timer_closed);
    uv_close((uv_handle_t *)&feed->catching_up, on_timer_closed);
}
