/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole array: GET /v1/tasks/ID sums it up, and POST .../cancel, hold, release and update change
 * each of its tasks whose state allows it.
 *
 * The change is made in slices (sliced_change.h), and the request is answered after the last. A
 * daemon that is killed in between has changed some of the tasks; the client sees that its
 * connection ends, and may repeat the request.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/array_tasks.h"
#include "daemon/dependencies.h"
#include "daemon/http/public_json.h"
#include "daemon/http/routes.h"
#include "daemon/http/sliced_change.h"
#include "daemon/http/task_change.h"
#include "taskfile/array_spec.h"

/* Is the path of an array? One query of the log for ids that are no live task's. */
static bool names_array(
    const struct http *http, const struct api_request *request, struct array_tasks *array)
{
    uint64_t id = api_request_id(request);
    return !*api_request_name(request) && !core_task(http->parts.core, id) &&
           array_tasks_read(http->parts.store, id, NULL, array) == 0;
}

static json_t *indices_json(const struct array_tasks *array)
{
    int *indices = calloc((size_t)array->n + 1, sizeof *indices);
    char *text = NULL;
    size_t size;
    FILE *out = indices ? open_memstream(&text, &size) : NULL;
    for (int i = 0; i < array->n && out; i++)
        indices[i] = array->elements[i].index;
    if (out) {
        array_indices_write(out, indices, array->n);
        fclose(out);
    }
    json_t *value = json_string(text ? text : "");
    free(indices);
    free(text);
    return value;
}

static void count_state(json_t *states, const char *word, int64_t n)
{
    json_int_t before = json_integer_value(json_object_get(states, word));
    if (n > 0)
        json_object_set_new(states, word, json_integer(before + n));
}

/* The number of its tasks in each state. */
static json_t *states_json(struct http *http, const struct array_tasks *array)
{
    json_t *states = json_object();
    int64_t ended[TASK_STATES];
    for (int i = 0; i < array->n; i++) {
        const struct task *task = core_task(http->parts.core, array->elements[i].task);
        if (task && !task_state_is_done(task->state))
            count_state(states, public_task_state(http, task), 1);
    }
    if (array->n > 0 && store_count_ended(http->parts.store, array->elements[0].task,
                            array->elements[array->n - 1].task, NULL, ended) == 0)
        for (int i = TASK_COMPLETED; i < TASK_STATES; i++)
            count_state(states, task_state_word((enum task_state)i), ended[i]);
    return states;
}

static json_t *array_json(struct http *http, const struct array_tasks *array)
{
    uint64_t first = array->elements[0].task, last = array->elements[array->n - 1].task;
    json_t *name = json_object_get(array->detail, "name"),
           *user = json_object_get(array->detail, "user");
    return json_pack("{s:I, s:O?, s:O?, s:I, s:o, s:i, s:o, s:I, s:I, s:o}", "id",
        (json_int_t)array->id, "name", name, "user", user, "uid", (json_int_t)array->uid, "indices",
        indices_json(array), "count", array->n, "limit",
        array->limit ? json_integer(array->limit) : json_null(), "first", (json_int_t)first, "last",
        (json_int_t)last, "states", states_json(http, array));
}

static void reply_array(
    struct http *http, struct api_request *request, const struct array_tasks *array)
{
    api_reply(request, 200, json_pack("{s:o}", "array", array_json(http, array)));
}

bool array_was_shown(struct http *http, struct api_request *request)
{
    struct array_tasks array = {0};
    if (!names_array(http, request, &array))
        return false;
    reply_array(http, request, &array);
    array_tasks_fini(&array);
    return true;
}

/* ---- changes ---- */

struct array_change {
    struct sliced_change sliced; /* of `array`, in its order; the first member */
    struct http *http;
    struct api_request *request;
    struct array_tasks array;
    struct event event;                        /* fed for each task, */
    struct dependency after[DEPENDENCIES_MAX]; /* of an UPDATE */
    json_t *detail;                            /* with this */
    const char *verb;
    bool is_broken;            /* the log could not be written: the rest is not changed */
    int n_changed;             /* the tasks that allowed it */
    struct fault limits_fault; /* of the last of which the new limits are not all in force */
};

static void change_free(struct array_change *change)
{
    array_tasks_fini(&change->array);
    json_decref(change->detail);
    free(change);
}

static bool is_allowed(const struct array_change *change, const struct event *event)
{
    struct fault fault;
    uid_t uid = api_request_peer(change->request).uid;
    return http_check_change(change->http, uid, event, &fault) == 0 &&
           (event->kind != EVENT_UPDATE || core_check_update(change->http->parts.core, event->task,
                                               &event->update, &fault) == 0);
}

static void change_element(struct sliced_change *sliced, int i)
{
    struct array_change *change = (struct array_change *)sliced;
    struct driver *driver = change->http->parts.driver;
    struct event event = change->event;
    event.time_us = driver_now_us(driver);
    event.task = change->array.elements[i].task;
    change->is_broken |= driver_log_is_broken(driver);
    if (change->is_broken || !is_allowed(change, &event) ||
        driver_feed(driver, &event, change->detail) != 0)
        return;
    change->n_changed++;
    http_apply_limits(change->http, &event, &change->limits_fault);
}

/* Tasks that its tasks now wait for may have ended meanwhile. */
static void catch_up(const struct array_change *change)
{
    const struct http_options *parts = &change->http->parts;
    const struct array_tasks *array = &change->array;
    if (change->event.kind == EVENT_UPDATE && change->event.update.sets_after && array->n > 0)
        dependencies_catch_up(parts->core, parts->store, parts->driver, array->elements[0].task,
            array->elements[array->n - 1].task);
}

static void reply_changed(const struct array_change *change)
{
    json_t *shown = array_json(change->http, &change->array);
    const char *note = *change->limits_fault.text ? change->limits_fault.text : NULL;
    api_reply(change->request, 200,
        json_pack("{s:o, s:i, s:s*}", "array", shown, "changed", change->n_changed, "note", note));
}

static void answer_change(struct sliced_change *sliced)
{
    struct array_change *change = (struct array_change *)sliced;
    catch_up(change);
    unsigned long long id = change->array.id;
    if (change->is_broken || driver_log_is_broken(change->http->parts.driver))
        api_reply_error(
            change->request, 507, "array %llu: the event log cannot be written at the moment", id);
    else if (change->n_changed > 0)
        reply_changed(change);
    else
        api_reply_error(
            change->request, 409, "array %llu: none of its tasks can be %s", id, change->verb);
    change_free(change);
}

static void refuse_change(struct sliced_change *sliced)
{
    struct array_change *change = (struct array_change *)sliced;
    api_reply_error(change->request, 503,
        "collocd is going down: %d of %d tasks of array %llu were %s", change->n_changed,
        change->array.n, (unsigned long long)change->array.id, change->verb);
    change_free(change);
}

static const struct sliced_change_kind array_change_kind = {
    .change = change_element,
    .answer = answer_change,
    .refuse = refuse_change,
};

static void begin_change(struct http *http, struct api_request *request, struct array_tasks *array,
    const struct event *event, json_t *detail, const char *verb)
{
    struct array_change *change = calloc(1, sizeof *change);
    if (!change) {
        array_tasks_fini(array);
        api_reply(request, 500, NULL);
        return;
    }
    *change = (struct array_change){.sliced = {.kind = &array_change_kind, .n = array->n},
        .http = http,
        .request = request,
        .array = *array,
        .event = *event,
        .detail = json_incref(detail),
        .verb = verb};
    if (event->kind == EVENT_UPDATE && event->update.sets_after) {
        memcpy(change->after, event->update.after,
            (size_t)event->update.n_after * sizeof *change->after);
        change->event.update.after = change->after;
    }
    change->sliced.is_forward = event->kind == EVENT_RELEASE;
    sliced_change_begin(http, &change->sliced, api_request_peer(request).uid);
}

bool array_was_changed(struct http *http, struct api_request *request, const struct event *change,
    json_t *detail, const char *verb)
{
    struct array_tasks array = {0};
    if (!names_array(http, request, &array))
        return false;
    bool is_allowed = may_change(http, api_request_peer(request).uid, array.uid);
    struct fault fault = {0};
    if (is_allowed && !driver_log_is_broken(http->parts.driver)) {
        begin_change(http, request, &array, change, detail, verb);
        return true;
    }
    set_not_yours(&fault, "array", array.id);
    if (!is_allowed)
        api_reply_error(request, 403, "%s", fault.text);
    else
        api_reply_error(request, 507, "the event log cannot be written at the moment");
    array_tasks_fini(&array);
    return true;
}
