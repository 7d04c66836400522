/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/tasks/cancel, /hold and /release: change a list of tasks. The log is written once for
 * many of them, where one request each would wait for the disk each time. What becomes of a task is
 * in the answer as its own request would have been answered:
 *
 *     {"tasks": [12, "14_3"]}   ->   {"results": [{"status": 200, "task": {...}},
 *                                                 {"status": 403, "error": {...}}]}
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "daemon/array_tasks.h"
#include "daemon/http/routes.h"
#include "daemon/http/sliced_change.h"
#include "daemon/http/task_change.h"

enum { TASKS_MAX = 1000 }; /* chosen: an answer of some megabytes */

/* One of the tasks. */
struct part {
    uint64_t id;       /* as the request names it: 12, */
    const char *index; /* and "7" of "12_7"; in the request's body; "": none */
    struct task_change change;
    char *result; /* as JSON; NULL: not known yet */
};

struct list_change {
    struct sliced_change sliced; /* the first member */
    struct api_request *request;
    struct task_change_request wanted;
    struct array_tasks array; /* the one that was read last */
    struct part parts[];
};

static void list_change_free(struct list_change *list)
{
    for (int i = 0; i < list->sliced.n; i++)
        free(list->parts[i].result);
    array_tasks_fini(&list->array);
    free(list);
}

static void change_part(struct sliced_change *sliced, int i)
{
    struct list_change *list = (struct list_change *)sliced;
    struct part *part = &list->parts[i];
    struct task_change *change = &part->change;
    change->task = http_find_task_id(list->wanted.http, part->id, part->index, &list->array);
    if (change->task != 0) {
        task_change_feed(&list->wanted, change);
        return;
    }
    change->status = 404;
    http_set_no_task(&change->message, part->id, part->index);
}

static json_t *result_json(const struct list_change *list, const struct task_change *change)
{
    const char *text = change->message.text;
    json_t *record = NULL;
    if (change->status / 100 != 2)
        return json_pack(
            "{s:i, s:o}", "status", change->status, "error", api_error_json(change->status, text));
    if (http_read_record(list->wanted.http, change->task, NULL, &record) != 0)
        return NULL;
    return json_pack("{s:i, s:o, s:s*}", "status", change->status, "task",
        http_record_for(list->request, record), "note", *text ? text : NULL);
}

static void write_result(struct sliced_change *sliced, int i)
{
    struct list_change *list = (struct list_change *)sliced;
    struct part *part = &list->parts[i];
    task_change_settle(&list->wanted, &part->change);
    json_t *result = result_json(list, &part->change);
    part->result = result ? json_dumps(result, API_JSON_FLAGS) : NULL;
    json_decref(result);
}

static char *write_answer(const struct list_change *list)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fputs("{\"results\":[", out);
    for (int i = 0; i < list->sliced.n; i++)
        fprintf(out, "%s%s", i ? "," : "",
            list->parts[i].result ? list->parts[i].result : "{\"status\":500}");
    fputs("]}", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static void answer_list(struct sliced_change *sliced)
{
    struct list_change *list = (struct list_change *)sliced;
    api_reply_text(list->request, 200, write_answer(list));
    list_change_free(list);
}

static void refuse_list(struct sliced_change *sliced)
{
    struct list_change *list = (struct list_change *)sliced;
    api_reply_error(list->request, 503, "collocd is going down: %d of %d tasks were %s",
        sliced->n_done, sliced->n, list->wanted.verb);
    list_change_free(list);
}

static const struct sliced_change_kind list_change_kind = {
    .change = change_part,
    .written = write_result,
    .answer = answer_list,
    .refuse = refuse_list,
};

/* ---- the request ---- */

/* "12_7": as in a path, also where 7 is more than any index. */
static bool read_element(const char *text, struct part *part)
{
    char digits[24];
    size_t n = strspn(text, "0123456789");
    int64_t id;
    if (n >= sizeof digits || text[n] != '_')
        return false;
    memcpy(digits, text, n);
    digits[n] = '\0';
    part->index = text + n + 1;
    if (parse_int64(digits, 1, INT64_MAX, &id) < 0)
        return false;
    part->id = (uint64_t)id;
    return *part->index && part->index[strspn(part->index, "0123456789")] == '\0';
}

static bool read_id(const json_t *id, struct part *part)
{
    if (json_is_string(id))
        return read_element(json_string_value(id), part);
    part->id = (uint64_t)json_integer_value(id);
    part->index = "";
    return json_integer_value(id) > 0;
}

/* Returns 0, or -errno with a fault. */
static int read_ids(const json_t *ids, struct list_change *list, struct fault *fault)
{
    size_t i;
    json_t *id;
    json_array_foreach(ids, i, id) {
        if (!read_id(id, &list->parts[i]))
            return fault_set(
                fault, EINVAL, "tasks: has to be a list of ids such as 12 and \"12_7\"");
    }
    return 0;
}

static void change_many(
    struct http *http, struct api_request *request, enum event_kind kind, const char *verb)
{
    const json_t *ids = json_object_get(api_request_body(request), "tasks");
    size_t n = json_array_size(ids);
    struct fault fault;
    if (n == 0 || n > TASKS_MAX) {
        api_reply_error(request, 400, "tasks: has to be a list of 1 to %d ids", TASKS_MAX);
        return;
    }
    size_t size = sizeof(struct list_change) + n * sizeof(struct part);
    if (!api_request_hold(request, size))
        return;
    struct list_change *list = calloc(1, size);
    if (!list) {
        api_reply(request, 500, NULL);
        return;
    }
    list->sliced = (struct sliced_change){
        .kind = &list_change_kind, .n = (int)n, .is_forward = kind == EVENT_RELEASE};
    list->request = request;
    list->wanted = (struct task_change_request){http, kind, verb, api_request_peer(request).uid};
    if (read_ids(ids, list, &fault) < 0) {
        api_reply_error(request, 400, "%s", fault.text);
        list_change_free(list);
        return;
    }
    sliced_change_begin(http, &list->sliced, list->wanted.uid);
}

void route_cancel_many(void *context, struct api_request *request)
{
    change_many(context, request, EVENT_CANCEL, "cancelled");
}

void route_hold_many(void *context, struct api_request *request)
{
    change_many(context, request, EVENT_HOLD, "held");
}

void route_release_many(void *context, struct api_request *request)
{
    change_many(context, request, EVENT_RELEASE, "released");
}
