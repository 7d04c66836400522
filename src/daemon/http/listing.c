/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes long lists of tasks a slice at a time, so that other requests are answered meanwhile. A
 * slice lists tasks until SLICE_US have passed. Users take turns in an idle handle of the loop, and
 * so do the listings of one user. A folded entry stands for all waiting tasks of an array.
 */
#include "daemon/http/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "daemon/attempt_list.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/public_json.h"
#include "daemon/http/routes.h"
#include "taskfile/array_spec.h"

#define SLICE_US      (5 * MS_US) /* chosen: no other request notices it */
#define ENDED_AT_ONCE 50          /* chosen: less than a slice */
#define EXAMINED      2000        /* ended tasks in one search; chosen: less than a millisecond */

/* Passes the record on if it is of the user in the query. Returns whether it is. */
static bool pass_record(struct listing *list, json_t *record)
{
    const char *user = json_string_value(json_object_get(record, "user"));
    if (!record || (list->user && (!user || strcmp(user, list->user) != 0)))
        return false;
    json_t *shown = http_record_for(list->request, json_incref(record));
    list->size = list->receiver->add(list->context, shown);
    json_decref(shown);
    return true;
}

/* ---- tasks that have not ended ---- */

/* A held task keeps its position in the queue. */
static enum part part_of(const struct task *task)
{
    if (task->state == TASK_QUEUED || task->state == TASK_HELD || task->state == TASK_BLOCKED)
        return PART_QUEUED;
    return task->state == TASK_RECOVERING ? PART_RECOVERING : PART_RUNNING;
}

static bool is_wanted(const struct listing *list, const struct task *task)
{
    return strcasecmp(list->state, "live") == 0 || strcasecmp(list->state, "all") == 0 ||
           strcasecmp(public_task_state(list->http, task), list->state) == 0;
}

/* Is this a waiting task of the same array as the last entry? */
static bool is_folded(const struct listing *list, enum part part, const struct task *task)
{
    const struct place *last = list->n_live ? &list->live[list->n_live - 1] : NULL;
    if (!last || !last->first || part != PART_QUEUED || last->part != PART_QUEUED)
        return false;
    return core_task(list->http->parts.core, last->first)->array.id == task->array.id;
}

/* Collects them in order, from the beginning of the page. Returns 0 or -ENOMEM. */
static int collect_live(struct listing *list)
{
    const struct core *core = list->http->parts.core;
    size_t capacity = 0;
    for (enum part part = list->at.part; part < PART_ENDED; part++) {
        uint64_t id = part == list->at.part ? list->at.id : 0;
        for (const struct task *task; (task = core_next_task(core, id));) {
            id = task->id;
            if (part_of(task) != part || !is_wanted(list, task))
                continue;
            if (is_folded(list, part, task))
                list->live[list->n_live - 1].id = id;
            else if (ARRAY_APPEND(list->live, list->n_live, capacity,
                         (struct place){part, id, list->folds && task->array.id ? id : 0}) < 0)
                return -ENOMEM;
        }
    }
    return 0;
}

/* Adds the number of folded tasks to the record of the first one. */
static void add_fold(struct listing *list, json_t *record, const struct place *place)
{
    const struct core *core = list->http->parts.core;
    const struct task *task = core_task(core, place->first);
    int *indices = calloc((size_t)(place->id - place->first) + 1, sizeof *indices), n = 0;
    char *text = NULL;
    size_t size;
    FILE *out = indices ? open_memstream(&text, &size) : NULL;
    for (uint64_t array = task->array.id; out && task && task->id <= place->id;
         task = core_next_task(core, task->id))
        if (task->array.id == array && part_of(task) == place->part && is_wanted(list, task))
            indices[n++] = task->array.index;
    if (out) {
        array_indices_write(out, indices, n);
        fclose(out);
    }
    json_object_set_new(record, "array_indices", json_string(text ? text : ""));
    json_object_set_new(record, "array_count", json_integer(n));
    json_object_set_new(
        record, "array_limit", json_integer(core_task(core, place->first)->array.limit));
    free(indices);
    free(text);
}

static json_t *make_record(const struct listing *list, const struct task *task)
{
    return (list->is_short ? http_task_summary_json : http_task_json)(list->http, task);
}

static void list_live(struct listing *list)
{
    list->at = list->live[list->next_live++];
    const struct place place = list->at;
    list->at.first = 0;
    const struct task *task = core_task(
        list->http->parts.core, place.first ? place.first : place.id);
    bool is_live = task && !task_state_is_done(task->state);
    json_t *record = is_live ? make_record(list, task) : NULL;
    if (record && place.first && place.first < place.id)
        add_fold(list, record, &place);
    list->page_left -= pass_record(list, record);
    json_decref(record);
}

/* ---- tasks that have ended ---- */

static int on_ended(void *context, uint64_t id, const json_t *record)
{
    struct listing *list = context;
    if (!record && list->damaged++ == 0) {
        list->first_damaged = id;
        log_error("the event log is damaged: the record of task %llu is not what was written",
            (unsigned long long)id);
    }
    if (record)
        attempt_list_upgrade((json_t *)(uintptr_t)record);
    bool added = pass_record(list, (json_t *)(uintptr_t)record);
    list->page_left -= added;
    list->ended_left -= added;
    list->at = (struct place){PART_ENDED, id, 0};
    return 0;
}

/* 0 or a fault. */
static int list_ended(struct listing *list)
{
    uint64_t before = list->at.id;
    int64_t left = list->page_left < list->ended_left ? list->page_left : list->ended_left;
    list->ended.limit = left < ENDED_AT_ONCE ? left : ENDED_AT_ONCE;
    list->ended.before = before;
    list->ended.examine = EXAMINED;
    int r = store_list_ended(list->http->parts.store, &list->ended, on_ended, list, &list->fault);
    if (r < 0 || list->at.id != before)
        return r;
    r = store_skip_ended(list->http->parts.store, &list->ended, &list->fault, &list->at.id);
    list->all_ended = list->at.id == 0;
    return r;
}

/* ---- slices ---- */

bool listing_is_complete(const struct listing *list)
{
    return list->next_live == list->n_live &&
           (!list->wants_ended || list->all_ended || list->ended_left <= 0);
}

static bool is_page_full(const struct listing *list)
{
    return list->page_left <= 0;
}

/* Does the next few milliseconds of it. Returns 1: complete; 0: not yet; or a fault. */
static int make_slice(struct listing *list)
{
    int64_t until_us = clock_monotonic_us() + SLICE_US;
    int r = 0;
    while (r == 0 && !listing_is_complete(list) && !is_page_full(list)) {
        if (clock_monotonic_us() >= until_us)
            return 0;
        if (list->next_live < list->n_live) {
            list_live(list);
            continue;
        }
        if (list->at.part != PART_ENDED)
            list->at = (struct place){PART_ENDED, 0, 0};
        r = list_ended(list);
    }
    return r < 0 ? r : 1;
}

void listing_free(struct listing *list)
{
    free(list->live);
    free(list->user);
    free(list->user_json);
    free(list->state);
    free(list);
}

static void end_listing(struct listing *list, bool is_listed)
{
    list->receiver->end(list->context, list, is_listed);
    listing_free(list);
}

/* The answer's text counts in the quota as it grows. */
static bool hold_text(struct listing *list)
{
    size_t more = list->size - list->held;
    list->held = list->size;
    return api_request_hold(list->request, more);
}

/* Makes the next slice. Returns true when the listing has ended and was freed. */
static bool go_on(struct listing *list)
{
    int r = make_slice(list);
    if (r < 0)
        api_reply_error(list->request, 500, "%s", list->fault.text);
    else if (!hold_text(list))
        r = -EDQUOT; /* the request was answered with the limit that is reached */
    if (r == 0)
        return false;
    http_serve_soon(list->http);
    end_listing(list, r > 0);
    return true;
}

static void on_turn(uv_idle_t *turn)
{
    struct http *http = turn->data;
    struct listing *list = (struct listing *)turns_take(&http->listings);
    if (!go_on(list))
        turns_add(&http->listings, &list->turn);
    if (!http->listings.first)
        uv_idle_stop(turn);
}

static void begin_listing(struct listing *list)
{
    struct http *http = list->http;
    if (list->wants_live && collect_live(list) < 0) {
        api_reply(list->request, 500, NULL);
        end_listing(list, false);
        return;
    }
    if (go_on(list))
        return;
    list->turn.user = names_counted_uid(http->parts.names, api_request_peer(list->request).uid);
    turns_add(&http->listings, &list->turn);
    uv_idle_start(&http->list_turn, on_turn);
}

void listings_refuse(struct http *http)
{
    uv_idle_stop(&http->list_turn);
    for (struct turn *turn; (turn = turns_take(&http->listings));) {
        struct listing *list = (struct listing *)turn;
        api_reply_error(list->request, 503, "collocd is going down");
        end_listing(list, false);
    }
}

/* So that only this user's ended tasks are read. If the system does not know the name any more, its
 * tasks are found by their records; other records are not decoded. */
static void on_user_known(void *context, const struct name *name)
{
    struct listing *list = context;
    int64_t uid = name->uid;
    list->ended.of_uid = name->state == NAME_KNOWN ||
                         parse_int64(list->user, 0, UINT32_MAX, &uid) == 0;
    list->ended.uid = (uint32_t)uid;
    if (!list->ended.of_uid) {
        json_t *user = json_string(list->user); /* NULL where it is no UTF-8 */
        list->ended.holds = list->user_json = json_dumps(user, JSON_COMPACT | JSON_ENCODE_ANY);
        json_decref(user);
    }
    begin_listing(list);
}

void listing_start(struct listing *list)
{
    if (list->user)
        names_ask_name(list->http->parts.names, list->user, on_user_known, list);
    else
        begin_listing(list);
}

/* ---- the request ---- */

struct listing *listing_create(struct http *http, struct api_request *request,
    const struct listing_receiver *receiver, void *context)
{
    struct listing *list = calloc(1, sizeof *list);
    if (!list)
        return NULL;
    list->http = http;
    list->request = request;
    list->receiver = receiver;
    list->context = context;
    return list;
}

static int find_done_state(const char *word, enum task_state *ret_state)
{
    for (int state = TASK_COMPLETED; state < TASK_STATES; state++) {
        if (strcasecmp(task_state_word((enum task_state)state), word) == 0) {
            *ret_state = (enum task_state)state;
            return 0;
        }
    }
    return -EINVAL;
}

static bool is_live_word(const char *word)
{
    return strcasecmp(word, "PENDING") == 0 || strcasecmp(word, "RUNNING") == 0 ||
           strcasecmp(word, "SUSPENDED") == 0 || strcasecmp(word, "PAUSED") == 0 ||
           strcasecmp(word, "COMPLETING") == 0;
}

int listing_set_state(struct listing *list, const char *state)
{
    bool all = strcasecmp(state, "all") == 0, ended = strcasecmp(state, "ended") == 0,
         live = strcasecmp(state, "live") == 0;
    bool one_done = find_done_state(state, &list->ended.state) == 0;
    list->wants_live = all || live || is_live_word(state);
    list->wants_ended = all || ended || one_done;
    list->state = strdup(state);
    return list->wants_live || list->wants_ended ? 0 : -EINVAL;
}
