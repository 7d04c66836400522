/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events, one row each. Beside them a table of live tasks is updated in the same transaction: which
 * tasks have not ended, and at which event each of them was placed. So a restart reads only the
 * events that it needs, however long the log is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/event_json.h"
#include "store/store.h"
#include "store/store_private.h"

/* Samples, latencies and ticks are many and cheap to lose: the log has none. */
static int check_logged(enum event_kind kind, struct fault *fault)
{
    bool is_logged = kind != EVENT_SAMPLE && kind != EVENT_LATENCY && kind != EVENT_SPEED &&
                     kind != EVENT_TICK;
    return is_logged
               ? 0
               : fault_set(fault, EINVAL, "%s does not belong into the log", event_name(kind));
}

/* The last id that the event uses. */
static int64_t last_id(const struct event *event)
{
    bool is_array = event->kind == EVENT_SUBMIT && event->submit.n_elements > 0;
    return (int64_t)(is_array ? event->submit.elements[event->submit.n_elements - 1].task
                              : event->task);
}

/* The ids of a new array's tasks follow one another. */
static int note_array(struct store *store, const struct event *event, struct fault *fault)
{
    int64_t first = (int64_t)event->submit.elements[0].task, last = last_id(event);
    int r = statement_write(store, ADD_ARRAY, fault, "iii", (int64_t)event->task, first, last);
    return r < 0 ? r : statement_write(store, ADD_LIVE_RANGE, fault, "ii", first, last);
}

static int note_live(
    struct store *store, const struct event *event, int64_t seq, struct fault *fault)
{
    int64_t task = (int64_t)event->task;
    switch (event->kind) {
    case EVENT_SUBMIT:
        return event->submit.elements ? note_array(store, event, fault)
                                      : statement_write(store, ADD_LIVE, fault, "i", task);
    case EVENT_PLACE:
        return statement_write(store, SET_PLACED, fault, "ii", seq, task);
    case EVENT_UNSTARTED:
    case EVENT_EXITED:
        return statement_write(store, SET_PLACED, fault, "ti", NULL, task);
    case EVENT_END:
        return statement_write(store, DELETE_LIVE, fault, "i", task);
    default:
        return 0;
    }
}

static int append_event(struct store *store, const struct event *event, int64_t wall_us,
    const char *body, const char *detail, struct fault *fault)
{
    if (!body)
        return fault_set(fault, ENOMEM, "out of memory");
    int64_t seq = store->added_seq + 1, task = (int64_t)event->task;
    int r = statement_write(store, ADD_EVENT, fault, "iitiitt", seq, task, event_name(event->kind),
        event->time_us, wall_us, body, detail);
    if (r == 0 && store->added_task == 0 && task > 1) /* a new log continues the old one's ids */
        r = statement_write(store, SET_FORGOTTEN, fault, "i", task - 1);
    if (r < 0)
        return r;
    store->added_seq = seq;
    store->added_task = last_id(event) > store->added_task ? last_id(event) : store->added_task;
    return note_live(store, event, seq, fault);
}

static bool is_of_a_task(enum event_kind kind)
{
    return kind != EVENT_GPUS && kind != EVENT_USAGE && kind != EVENT_RESERVE &&
           kind != EVENT_UNRESERVE && kind != EVENT_SUSPENSION_COST && kind != EVENT_FIFO &&
           kind != EVENT_DELAYS;
}

int store_append(struct store *store, const struct event *event, int64_t wall_us,
    const json_t *detail, struct fault *fault)
{
    json_auto_t *object = NULL;
    CLEANUP_FREE char *detail_text = NULL;
    if (event->kind == EVENT_SUBMIT && event->submit.elements && event->submit.n_elements < 1)
        return fault_set(fault, EINVAL, "array %llu has no task", (unsigned long long)event->task);
    if (event->task > INT64_MAX || (event->task != 0) != is_of_a_task(event->kind))
        return fault_set(fault, EINVAL, "%s of task %llu: no such event", event_name(event->kind),
            (unsigned long long)event->task);
    if (detail && (!json_is_object(detail) || !(detail_text = store_dump_json(detail))))
        return fault_set(
            fault, EINVAL, "the detail of %s is no JSON object", event_name(event->kind));
    int r = check_logged(event->kind, fault);
    if (r == 0)
        r = event_encode(event, fault, &object);
    if (r < 0)
        return r;
    CLEANUP_FREE char *body = store_dump_json(object);
    return append_event(store, event, wall_us, body, detail_text, fault);
}

/* Reads events. Tasks are often submitted with the same options: the body that was read last is
 * kept, for parsing takes most of the time. */
struct event_reader {
    struct store *store;
    store_find_policy *find_policy;
    store_on_event *on_event;
    void *context;
    char *body_text; /* of the last event; NULL: none */
    json_t *body;
};

static void reader_close(struct event_reader *reader)
{
    free(reader->body_text);
    json_decref(reader->body);
}

/* The body of the row; NULL when it is no JSON. */
static json_t *read_body(struct event_reader *reader, sqlite3_stmt *row)
{
    const char *text = (const char *)sqlite3_column_text(row, 4);
    if (text && reader->body_text && strcmp(text, reader->body_text) == 0)
        return reader->body;
    reader_close(reader);
    reader->body = store_load_json(row, 4);
    reader->body_text = reader->body ? strdup(text) : NULL;
    return reader->body;
}

/* Decodes the row that GET_EVENT stands on. */
static int hand_over(
    struct event_reader *reader, sqlite3_stmt *row, struct fault *fault, bool *ret_understood)
{
    if (!sqlite3_column_int(row, 6))
        return fault_set(fault, EINVAL, "is not what was written (its checksum is wrong)");
    const char *kind = (const char *)sqlite3_column_text(row, 1);
    struct event event = {
        .task = (uint64_t)sqlite3_column_int64(row, 0), .time_us = sqlite3_column_int64(row, 2)};
    if (!kind || event_parse_name(kind, &event.kind) < 0)
        return fault_set(fault, EINVAL, "'%.40s' is no kind of event", kind ? kind : "");
    int r = check_logged(event.kind, fault);
    if (r == 0)
        r = event_decode(read_body(reader, row), reader->find_policy, fault, &event);
    if (r < 0)
        return r;
    json_t *detail = store_load_json(row, 5);
    *ret_understood = detail || sqlite3_column_type(row, 5) == SQLITE_NULL;
    r = *ret_understood
            ? reader->on_event(reader->context, &event, sqlite3_column_int64(row, 3), detail)
            : fault_set(fault, EINVAL, "its detail is no JSON");
    json_decref(detail);
    event_release(&event);
    return r;
}

static int read_event(struct event_reader *reader, int64_t seq, struct fault *fault)
{
    struct store *store = reader->store;
    sqlite3_stmt *row = store->statements[GET_EVENT];
    statement_bind(row, "i", seq);
    int r = statement_step(store, row, fault);
    if (r > 0) {
        bool understood = false;
        struct fault why = {""};
        r = hand_over(reader, row, &why, &understood);
        if (!understood)
            r = store_damaged(store, fault, "event %lld (%s of task %lld): %s", (long long)seq,
                (const char *)sqlite3_column_text(row, 1), (long long)sqlite3_column_int64(row, 0),
                why.text);
    }
    statement_reset(row);
    return r;
}

/* Walks the events whose numbers the statement yields. `ret_seq`: of the last; may be NULL. */
static int walk_events(
    struct event_reader *reader, sqlite3_stmt *numbers, struct fault *fault, int64_t *ret_seq)
{
    int r;
    while ((r = statement_step(reader->store, numbers, fault)) > 0) {
        int64_t seq = sqlite3_column_int64(numbers, 0);
        if (ret_seq)
            *ret_seq = seq;
        if ((r = read_event(reader, seq, fault)) != 0)
            break;
    }
    statement_reset(numbers);
    reader_close(reader);
    return r;
}

/* ---- a restart: of an array only the tasks that it needs ---- */

struct replay {
    struct store *store;
    store_on_event *on_event;
    void *context;
    int64_t first_placed; /* of the live tasks; INT64_MAX: none is placed */
};

/* Returns 0 or -errno. Once for all: it reads every live task, of which an array may have many. */
static int read_first_placed(struct replay *replay, struct fault *fault)
{
    sqlite3_stmt *row = replay->store->statements[FIRST_PLACED];
    int r = statement_step(replay->store, row, fault);
    replay->first_placed = r > 0 ? sqlite3_column_int64(row, 0) : INT64_MAX;
    statement_reset(row);
    return r < 0 ? r : 0;
}

static bool is_replayed(const struct replay *replay, uint64_t task)
{
    const struct store *store = replay->store;
    sqlite3_stmt *row = store->statements[IS_REPLAYED];
    statement_bind(row, "ii", (int64_t)task, replay->first_placed);
    bool is_needed = statement_step(store, row, NULL) > 0 && sqlite3_column_int(row, 0);
    statement_reset(row);
    return is_needed;
}

static int replay_event(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    const struct replay *replay = context;
    if (event->kind != EVENT_SUBMIT || !event->submit.elements)
        return replay->on_event(replay->context, event, wall_us, detail);
    struct event part = *event;
    struct array_element *elements = calloc((size_t)event->submit.n_elements + 1, sizeof *elements);
    if (!elements)
        return -ENOMEM;
    part.submit.elements = elements;
    part.submit.n_elements = 0;
    for (int i = 0; i < event->submit.n_elements; i++)
        if (is_replayed(replay, event->submit.elements[i].task))
            elements[part.submit.n_elements++] = event->submit.elements[i];
    int r = replay->on_event(replay->context, &part, wall_us, detail);
    free(elements);
    return r;
}

int store_replay(struct store *store, store_find_policy *find_policy, store_on_event *on_event,
    void *context, struct fault *fault)
{
    struct replay replay = {.store = store, .on_event = on_event, .context = context};
    int r = read_first_placed(&replay, fault);
    if (r < 0)
        return r;
    struct event_reader reader = {store, find_policy, replay_event, &replay, NULL, NULL};
    return walk_events(&reader, store->statements[REPLAY], fault, NULL);
}

int store_all_events(struct store *store, store_find_policy *find_policy, store_on_event *on_event,
    void *context, struct fault *fault)
{
    struct event_reader reader = {store, find_policy, on_event, context, NULL, NULL};
    return walk_events(&reader, store->statements[ALL_EVENTS], fault, NULL);
}

int store_task_events(struct store *store, uint64_t task, store_find_policy *find_policy,
    store_on_event *on_event, void *context, struct fault *fault)
{
    struct event_reader reader = {store, find_policy, on_event, context, NULL, NULL};
    statement_bind(store->statements[TASK_EVENTS], "i", (int64_t)task);
    return walk_events(&reader, store->statements[TASK_EVENTS], fault, NULL);
}

int store_events_after(struct store *store, int64_t seq, int64_t limit,
    store_find_policy *find_policy, store_on_event *on_event, void *context, struct fault *fault,
    int64_t *ret_seq)
{
    struct event_reader reader = {store, find_policy, on_event, context, NULL, NULL};
    *ret_seq = seq;
    statement_bind(store->statements[EVENTS_AFTER], "ii", seq, limit);
    return walk_events(&reader, store->statements[EVENTS_AFTER], fault, ret_seq);
}

int store_get_last(
    struct store *store, struct fault *fault, uint64_t *ret_task, int64_t *ret_time_us)
{
    sqlite3_stmt *row = store->statements[LAST];
    int r = statement_step(store, row, fault);
    if (r > 0) {
        *ret_task = (uint64_t)sqlite3_column_int64(row, 0);
        *ret_time_us = sqlite3_column_int64(row, 1);
    }
    statement_reset(row);
    return r < 0 ? r : 0;
}

int64_t store_last_event(const struct store *store)
{
    return store->last_seq;
}

int store_changed_tasks(struct store *store, int64_t seq, size_t limit, struct fault *fault,
    uint64_t *ret_tasks, size_t *ret_count)
{
    sqlite3_stmt *statement = store->statements[CHANGED_TASKS];
    int r;
    *ret_count = 0;
    statement_bind(statement, "ii", seq, (int64_t)limit);
    while ((r = statement_step(store, statement, fault)) > 0 && *ret_count < limit)
        ret_tasks[(*ret_count)++] = (uint64_t)sqlite3_column_int64(statement, 0);
    statement_reset(statement);
    return r < 0 ? r : 0;
}

int store_get_array(struct store *store, uint64_t array, struct fault *fault, uint64_t *ret_first,
    uint64_t *ret_last)
{
    sqlite3_stmt *row = store->statements[GET_ARRAY];
    statement_bind(row, "i", (int64_t)array);
    int r = statement_step(store, row, fault);
    if (r > 0) {
        *ret_first = (uint64_t)sqlite3_column_int64(row, 0);
        *ret_last = (uint64_t)sqlite3_column_int64(row, 1);
    }
    statement_reset(row);
    return r < 0 ? r : r > 0 ? 0 : STORE_NONE;
}
