/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/tasks: the tasks that wait and run, then those that have ended, in pages.
 *
 * A list may be long, so it is made in slices of a few milliseconds, one in each turn of the loop,
 * with other requests in between. The ids of the live tasks are collected first, in order: a task
 * that is placed between two slices is neither left out nor listed twice.
 *
 * An answer has at most PAGE_MAX tasks. Where there are more, `next` is the position of the next
 * page: "2.1234.20" is after task 1234 of the third part of the list (running, recovering, queued,
 * ended), with at most 20 ended tasks to come. The text is written as it grows, because JSON
 * objects of a long queue would take five times the memory.
 */
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

#define MOMENT_MAX_S  1e12  /* chosen: the year 33658 */
#define PAGE_MAX      10000 /* tasks; chosen: 10 MB of JSON */
#define LIMIT_USUAL   1000  /* ended tasks; chosen */
#define LIMIT_MAX     1000000
#define SLICE_US      (5 * MS_US) /* chosen: no other request notices it */
#define ENDED_AT_ONCE 50          /* chosen: less than a slice */
#define EXAMINED      2000        /* ended tasks in one search; chosen: less than a millisecond */

enum part { PART_RUNNING, PART_RECOVERING, PART_QUEUED, PART_ENDED };

/* After this task of this part; 0: before the first. */
struct place {
    enum part part;
    uint64_t id;
    uint64_t first; /* of a folded entry, which goes to `id`; 0: none */
};

struct listing {
    struct listing *next;
    struct http *http;
    struct api_request *request;
    char *user, *state; /* as asked for; user may be NULL */
    char *user_json;    /* the user as it stands in records, to find them by; NULL: by uid */
    bool wants_live, wants_ended;
    struct store_ended_filter ended;
    struct place at;
    bool folds;         /* the waiting tasks of an array are one entry */
    struct place *live; /* still to be listed, from next_live on */
    size_t n_live, next_live;
    int64_t page_left, ended_left;
    bool all_ended; /* there are no more of them */
    FILE *out;
    char *text;
    size_t size, held;
    bool any, failed;
    int damaged; /* records of ended tasks that cannot be shown */
    uint64_t first_damaged;
    struct fault fault; /* of the log */
};

/* ---- the text ---- */

static bool text_begin(struct listing *list)
{
    list->out = open_memstream(&list->text, &list->size);
    if (list->out)
        fputs("{\"tasks\":[", list->out);
    return list->out;
}

/* Adds the record if it is of the user in the query. Returns whether it is. */
static bool text_add(struct listing *list, json_t *record)
{
    const char *user = json_string_value(json_object_get(record, "user"));
    if (!record || (list->user && (!user || strcmp(user, list->user) != 0)))
        return false;
    if (list->any)
        fputc(',', list->out);
    json_t *shown = for_asker(list->request, json_incref(record));
    list->failed |= json_dumpf(shown, list->out, API_JSON_FLAGS) < 0;
    json_decref(shown);
    list->any = true;
    return true;
}

/* Adds a warning where the list is incomplete because the log is damaged. */
static void text_warn(struct listing *list)
{
    char text[1024] = "";
    const char *loss = store_get_loss(list->http->parts.store);
    if (list->damaged)
        snprintf(text, sizeof text,
            "records of ended tasks are damaged (%d; the first is task %llu): `colloc check` says more. ",
            list->damaged, (unsigned long long)list->first_damaged);
    size_t used = strlen(text);
    if (*loss)
        snprintf(text + used, sizeof text - used, "The event log has lost something: %s", loss);
    if (!*text)
        return;
    json_t *warning = json_string(text);
    fputs(",\"warning\":", list->out);
    list->failed |= json_dumpf(warning, list->out, API_JSON_FLAGS | JSON_ENCODE_ANY) < 0;
    json_decref(warning);
}

/* Returns the text, or NULL when memory was out. */
static char *text_end(struct listing *list, const struct place *next)
{
    fputc(']', list->out);
    if (next)
        fprintf(list->out, ",\"next\":\"%d.%llu.%lld\"", (int)next->part,
            (unsigned long long)next->id, (long long)list->ended_left);
    text_warn(list);
    fputc('}', list->out);
    list->failed |= ferror(list->out) != 0;
    list->failed |= fclose(list->out) != 0;
    list->out = NULL;
    char *text = list->text;
    list->text = NULL;
    if (!list->failed)
        return text;
    free(text);
    return NULL;
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

/* Is the waiting task of the array of which the last entry is? */
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

/* Adds what a folded entry stands for to the record of its first task. */
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

static void list_live(struct listing *list)
{
    list->at = list->live[list->next_live++];
    const struct place place = list->at;
    list->at.first = 0;
    const struct task *task = core_task(
        list->http->parts.core, place.first ? place.first : place.id);
    json_t *record = task && !task_state_is_done(task->state) ? http_task_json(list->http, task)
                                                              : NULL;
    if (record && place.first && place.first < place.id)
        add_fold(list, record, &place);
    list->page_left -= text_add(list, record);
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
    bool added = text_add(list, (json_t *)(uintptr_t)record);
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

static bool is_complete(const struct listing *list)
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
    while (r == 0 && !is_complete(list) && !is_page_full(list)) {
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

static void listing_free(struct listing *list)
{
    if (list->out)
        fclose(list->out);
    free(list->text);
    free(list->live);
    free(list->user);
    free(list->user_json);
    free(list->state);
    free(list);
}

/* The text counts in the quota as it grows. */
static bool hold_text(struct listing *list)
{
    fflush(list->out);
    size_t more = list->size - list->held;
    list->held = list->size;
    return api_request_hold(list->request, more);
}

/* Makes the next slice. Returns true when the list was answered and freed. */
static bool go_on(struct listing *list)
{
    int r = make_slice(list);
    bool is_over = r != 0;
    if (r < 0)
        api_reply_error(list->request, 500, "%s", list->fault.text);
    else if (!hold_text(list))
        is_over = true; /* the request was answered with the limit that is reached */
    else if (r > 0)
        api_reply_held_text(
            list->request, 200, text_end(list, is_complete(list) ? NULL : &list->at));
    if (is_over) {
        http_serve_soon(list->http);
        listing_free(list);
    }
    return is_over;
}

static void append_listing(struct http *http, struct listing *list)
{
    struct listing **at = &http->listings;
    while (*at)
        at = &(*at)->next;
    list->next = NULL;
    *at = list;
}

static void on_turn(uv_idle_t *turn)
{
    struct http *http = turn->data;
    struct listing *list = http->listings;
    http->listings = list->next;
    if (!go_on(list))
        append_listing(http, list);
    if (!http->listings)
        uv_idle_stop(turn);
}

static void begin_listing(struct listing *list)
{
    struct http *http = list->http;
    if ((list->wants_live && collect_live(list) < 0) || !text_begin(list)) {
        api_reply(list->request, 500, NULL);
        listing_free(list);
        return;
    }
    if (go_on(list))
        return;
    append_listing(http, list);
    uv_idle_start(&http->list_turn, on_turn);
}

void listings_refuse(struct http *http)
{
    uv_idle_stop(&http->list_turn);
    for (struct listing *list = http->listings, *next; list; list = next) {
        next = list->next;
        api_reply_error(list->request, 503, "collocd is going down");
        listing_free(list);
    }
    http->listings = NULL;
}

/* ---- the query ---- */

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

/* "2.1234.20" */
static int parse_next(const char *text, struct listing *list)
{
    char id_text[24] = "";
    int64_t id, left;
    const char *dot = strlen(text) > 2 ? strchr(text + 2, '.') : NULL;
    if (text[0] < '0' || text[0] > '0' + PART_ENDED || text[1] != '.' || !dot ||
        !span_copy((struct span){text + 2, (size_t)(dot - text - 2)}, id_text, sizeof id_text) ||
        parse_int64(id_text, 0, INT64_MAX, &id) < 0 ||
        parse_int64(dot + 1, 0, LIMIT_MAX, &left) < 0)
        return -EINVAL;
    list->at = (struct place){(enum part)(text[0] - '0'), (uint64_t)id, 0};
    list->ended_left = left;
    return 0;
}

static int read_state(struct listing *list, const char *state)
{
    bool all = strcasecmp(state, "all") == 0, ended = strcasecmp(state, "ended") == 0,
         live = strcasecmp(state, "live") == 0;
    bool one_done = find_done_state(state, &list->ended.state) == 0;
    list->wants_live = all || live || is_live_word(state);
    list->wants_ended = all || ended || one_done;
    return list->wants_live || list->wants_ended ? 0 : -EINVAL;
}

/* Query parameter `name`, seconds since 1970, into microseconds; as it was where there is none. */
static int read_moment(struct listing *list, const char *name, struct fault *fault, int64_t *ret_us)
{
    const char *text = api_request_query(list->request, name);
    double seconds;
    if (!text)
        return 0;
    if (parse_double(text, 0, MOMENT_MAX_S, &seconds) < 0)
        return fault_set(fault, EINVAL, "%s=%.40s: must be seconds since 1970", name, text);
    *ret_us = (int64_t)(seconds * 1e6);
    return 0;
}

static int read_query(struct listing *list, struct fault *fault)
{
    const char *state = api_request_query(list->request, "state"),
               *limit = api_request_query(list->request, "limit"),
               *after = api_request_query(list->request, "after"),
               *fold = api_request_query(list->request, "fold"),
               *user = api_request_query(list->request, "user"),
               *page = api_request_query(list->request, "page");
    list->page_left = PAGE_MAX;
    list->ended_left = LIMIT_USUAL;
    if (!state)
        state = "live";
    if (read_state(list, state) < 0)
        return fault_set(fault, EINVAL,
            "state=%.40s: must be live, ended, all or a state such as RUNNING", state);
    if (limit && parse_int64(limit, 1, LIMIT_MAX, &list->ended_left) < 0)
        return fault_set(fault, EINVAL, "limit=%.20s: must be from 1 to %d", limit, LIMIT_MAX);
    if (page && parse_int64(page, 1, PAGE_MAX, &list->page_left) < 0)
        return fault_set(fault, EINVAL, "page=%.20s: must be from 1 to %d", page, PAGE_MAX);
    if (after && parse_next(after, list) < 0)
        return fault_set(
            fault, EINVAL, "after=%.40s: must be what the page before gave as `next`", after);
    list->folds = fold && strcmp(fold, "1") == 0;
    int r = read_moment(list, "since", fault, &list->ended.since_wall_us);
    if (r == 0)
        r = read_moment(list, "until", fault, &list->ended.until_wall_us);
    if (r < 0)
        return r;
    list->state = strdup(state);
    list->user = user ? strdup(user) : NULL;
    return list->state && (list->user || !user) ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

/* So that only this user's ended tasks are read. The tasks of a name that the system does not know
 * any more are those whose records have it: the others are not decoded. */
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

void route_list(void *context, struct api_request *request)
{
    struct listing *list = calloc(1, sizeof *list);
    struct fault fault = {0};
    if (!list) {
        api_reply(request, 500, NULL);
        return;
    }
    list->http = context;
    list->request = request;
    int r = read_query(list, &fault);
    if (r < 0) {
        api_reply_error(request, r == -EINVAL ? 400 : 500, "%s", fault.text);
        listing_free(list);
    } else if (list->user) {
        names_ask_name(list->http->parts.names, list->user, on_user_known, list);
    } else {
        begin_listing(list);
    }
}
