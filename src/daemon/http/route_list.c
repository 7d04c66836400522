/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/tasks: live tasks, then ended ones, in pages.
 *
 * A list may be long, so it is made in slices (listing.h). An answer has at most PAGE_MAX tasks.
 * Where there are more, `next` is the position of the next page: "2.1234.20" is after task 1234 of
 * the third part of the list (running, recovering, queued, ended), with at most 20 ended tasks to
 * come. The text is written as it grows, because JSON objects of a long queue would take five times
 * the memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "daemon/http/listing.h"
#include "daemon/http/routes.h"

#define MOMENT_MAX_S 1e12  /* chosen: the year 33658 */
#define PAGE_MAX     10000 /* tasks; chosen: 10 MB of JSON */
#define LIMIT_USUAL  1000  /* ended tasks; chosen */

/* The answer's text as it grows. */
struct list_text {
    FILE *out;
    char *text;
    size_t size;
    bool any, failed;
};

static struct list_text *text_create(void)
{
    struct list_text *text = calloc(1, sizeof *text);
    if (text)
        text->out = open_memstream(&text->text, &text->size);
    if (text && text->out) {
        fputs("{\"tasks\":[", text->out);
        return text;
    }
    free(text);
    return NULL;
}

static void text_free(struct list_text *text)
{
    if (text->out)
        fclose(text->out);
    free(text->text);
    free(text);
}

static size_t text_add(void *context, const json_t *record)
{
    struct list_text *text = context;
    if (text->any)
        fputc(',', text->out);
    text->failed |= json_dumpf(record, text->out, API_JSON_FLAGS) < 0;
    text->any = true;
    fflush(text->out);
    return text->size;
}

/* Adds a warning where the list is incomplete because the log is damaged. */
static void text_warn(struct list_text *text, const struct listing *list)
{
    char words[1024] = "";
    const char *loss = store_get_loss(list->http->parts.store);
    if (list->damaged)
        snprintf(words, sizeof words,
            "records of ended tasks are damaged (%d; the first is task %llu): `colloc check` says more. ",
            list->damaged, (unsigned long long)list->first_damaged);
    size_t used = strlen(words);
    if (*loss)
        snprintf(words + used, sizeof words - used, "The event log has lost something: %s", loss);
    if (!*words)
        return;
    json_t *warning = json_string(words);
    fputs(",\"warning\":", text->out);
    text->failed |= json_dumpf(warning, text->out, API_JSON_FLAGS | JSON_ENCODE_ANY) < 0;
    json_decref(warning);
}

/* Returns the text, or NULL when memory was out. */
static char *text_take(struct list_text *text, const struct listing *list)
{
    fputc(']', text->out);
    if (!listing_is_complete(list))
        fprintf(text->out, ",\"next\":\"%d.%llu.%lld\"", (int)list->at.part,
            (unsigned long long)list->at.id, (long long)list->ended_left);
    text_warn(text, list);
    fputc('}', text->out);
    text->failed |= ferror(text->out) != 0;
    text->failed |= fclose(text->out) != 0;
    text->out = NULL;
    char *taken = text->failed ? NULL : text->text;
    if (taken)
        text->text = NULL;
    return taken;
}

static void text_end(void *context, const struct listing *list, bool is_listed)
{
    struct list_text *text = context;
    if (is_listed)
        api_reply_held_text(list->request, 200, text_take(text, list));
    text_free(text);
}

static const struct listing_receiver text_receiver = {text_add, text_end};

/* ---- the query ---- */

/* "2.1234.20" */
static int parse_next(const char *text, struct listing *list)
{
    char id_text[24] = "";
    int64_t id, left;
    const char *dot = strlen(text) > 2 ? strchr(text + 2, '.') : NULL;
    if (text[0] < '0' || text[0] > '0' + PART_ENDED || text[1] != '.' || !dot ||
        !span_copy((struct span){text + 2, (size_t)(dot - text - 2)}, id_text, sizeof id_text) ||
        parse_int64(id_text, 0, INT64_MAX, &id) < 0 ||
        parse_int64(dot + 1, 0, LISTING_LIMIT_MAX, &left) < 0)
        return -EINVAL;
    list->at = (struct place){(enum part)(text[0] - '0'), (uint64_t)id, 0};
    list->ended_left = left;
    return 0;
}

/* Query parameter `name`, seconds since 1970, into microseconds; unchanged if it is absent. */
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
               *is_short = api_request_query(list->request, "short"),
               *user = api_request_query(list->request, "user"),
               *page = api_request_query(list->request, "page");
    list->page_left = PAGE_MAX;
    list->ended_left = LIMIT_USUAL;
    if (!state)
        state = "live";
    if (listing_set_state(list, state) < 0)
        return fault_set(fault, EINVAL,
            "state=%.40s: must be live, ended, all or a state such as RUNNING", state);
    if (limit && parse_int64(limit, 1, LISTING_LIMIT_MAX, &list->ended_left) < 0)
        return fault_set(
            fault, EINVAL, "limit=%.20s: must be from 1 to %d", limit, LISTING_LIMIT_MAX);
    if (page && parse_int64(page, 1, PAGE_MAX, &list->page_left) < 0)
        return fault_set(fault, EINVAL, "page=%.20s: must be from 1 to %d", page, PAGE_MAX);
    if (after && parse_next(after, list) < 0)
        return fault_set(
            fault, EINVAL, "after=%.40s: must be what the page before gave as `next`", after);
    list->folds = fold && strcmp(fold, "1") == 0;
    list->is_short = is_short && strcmp(is_short, "1") == 0;
    int r = read_moment(list, "since", fault, &list->ended.since_wall_us);
    if (r == 0)
        r = read_moment(list, "until", fault, &list->ended.until_wall_us);
    if (r < 0)
        return r;
    list->user = user ? strdup(user) : NULL;
    return list->state && (list->user || !user) ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

void route_list(void *context, struct api_request *request)
{
    struct fault fault = {0};
    struct list_text *text = text_create();
    struct listing *list = listing_create(context, request, &text_receiver, text);
    int r = list && text ? read_query(list, &fault) : fault_set(&fault, ENOMEM, "out of memory");
    if (r == 0) {
        listing_start(list);
        return;
    }
    api_reply_error(request, r == -EINVAL ? 400 : 500, "%s", fault.text);
    if (list)
        listing_free(list);
    if (text)
        text_free(text);
}
