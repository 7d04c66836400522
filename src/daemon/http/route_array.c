/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole array: GET /v1/tasks/ID sums it up, and POST .../cancel, hold and release change each of
 * its tasks that allows it. All changes of one request are written to the log together.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/array_tasks.h"
#include "daemon/http/public_json.h"
#include "daemon/http/routes.h"
#include "taskfile/array_spec.h"

/* Is the path of an array? One query of the log for ids that are no live task's. */
static bool names_array(
    const struct http *http, const struct api_request *request, struct array_tasks *ret_array)
{
    uint64_t id = api_request_id(request);
    return !*api_request_name(request) && !core_task(http->parts.core, id) &&
           array_tasks_read(http->parts.store, id, NULL, ret_array) == 0;
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

/* How many of its tasks are in which state. */
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
    struct http *http, struct api_request *request, const struct array_tasks *array, int changed)
{
    json_t *shown = array_json(http, array);
    api_reply(request, 200,
        changed >= 0 ? json_pack("{s:o, s:i}", "array", shown, "changed", changed)
                     : json_pack("{s:o}", "array", shown));
}

bool array_was_shown(struct http *http, struct api_request *request)
{
    struct array_tasks array;
    if (!names_array(http, request, &array))
        return false;
    reply_array(http, request, &array, -1);
    array_tasks_fini(&array);
    return true;
}

/* Feeds the event to each task. Returns how many allowed it. */
static int change_all(
    struct http *http, const struct array_tasks *array, enum event_kind kind, uid_t by_uid)
{
    json_t *detail = json_pack("{s:I}", "by_uid", (json_int_t)by_uid);
    int changed = 0;
    driver_begin_batch(http->parts.driver);
    for (int i = 0; i < array->n; i++) {
        struct event event = driver_event(http->parts.driver, kind, array->elements[i].task);
        changed += driver_feed(http->parts.driver, &event, detail) == 0;
    }
    driver_end_batch(http->parts.driver);
    json_decref(detail);
    return changed;
}

bool array_was_changed(
    struct http *http, struct api_request *request, enum event_kind kind, const char *verb)
{
    struct array_tasks array;
    uid_t uid = api_request_peer(request).uid;
    if (!names_array(http, request, &array))
        return false;
    if (!may_touch(request, array.uid)) {
        api_reply_error(request, 403, "array %llu is not yours", (unsigned long long)array.id);
    } else if (driver_log_is_broken(http->parts.driver)) {
        api_reply_error(request, 507, "the event log cannot be written at the moment");
    } else {
        int changed = change_all(http, &array, kind, uid);
        if (changed > 0)
            reply_array(http, request, &array, changed);
        else
            api_reply_error(request, 409, "array %llu: none of its tasks can be %s",
                (unsigned long long)array.id, verb);
    }
    array_tasks_fini(&array);
    return true;
}
