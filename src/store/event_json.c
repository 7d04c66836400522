/* SPDX-License-Identifier: Apache-2.0 */
/* Most members are rows of tables (event_fields.h). Here are the lists: GPUs, those of a placement
 * or a move, the tasks of a sample, users, dependencies, arrays. */
#include "store/event_json.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/sharing_choice.h"
#include "store/event_fields.h"

/* Readers refuse larger arrays; chosen. */
enum { ARRAY_ELEMENTS_MAX = 1000000 };

/* ---- writing ---- */

static int encode_indices(json_t *object, const int *gpus, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++) {
        if (json_array_append_new(array, json_integer(gpus[i])) < 0) {
            json_decref(array);
            return -1;
        }
    }
    return json_object_set_new(object, "gpus", array);
}

static int encode_free(json_t *object, const int64_t *free_us, int n)
{
    json_t *list = json_array();
    int r = list ? 0 : -1;
    for (int i = 0; i < n && r == 0; i++)
        r = json_array_append_new(list, json_integer((json_int_t)free_us[i]));
    return json_object_set_new(object, "free_us", list) < 0 ? -1 : r;
}

/* A suspension names the neighbour GPU for its copy, if it has one. */
static bool names_destination(const struct event *event)
{
    enum event_kind kind = event->kind;
    return kind == EVENT_MOVE || kind == EVENT_MOVING || kind == EVENT_RESUMING ||
           (kind == EVENT_SUSPENDING && event->yield.n > 0);
}

/* The run at the front of the elements. */
static struct array_run first_run(const struct array_element *elements, int n)
{
    struct array_run run = {(int64_t)elements[0].task, elements[0].index, 0, 1};
    if (n > 1 && elements[1].task == elements[0].task + 1)
        run.step = elements[1].index - elements[0].index;
    while (run.count < n && run.step > 0 &&
           elements[run.count].task == elements[run.count - 1].task + 1 &&
           elements[run.count].index == elements[run.count - 1].index + run.step)
        run.count++;
    run.step = run.count > 1 ? run.step : 0;
    return run;
}

static int encode_array(json_t *object, const struct event *event)
{
    const struct array_element *elements = event->submit.elements;
    json_t *list = json_array();
    struct array_run run;
    for (int i = 0; i < event->submit.n_elements; i += run.count) {
        json_t *entry = json_object();
        run = first_run(elements + i, event->submit.n_elements - i);
        int r = entry ? fields_encode(entry, &array_run_fields, &run) : -1;
        if (json_array_append_new(list, entry) < 0 || r < 0) {
            json_decref(list);
            return -1;
        }
    }
    return json_object_set_new(object, "array", list);
}

/* The window has the buckets up to the oldest that is charged. */
static int encode_window(json_t *object, const struct usage_window *window)
{
    json_t *list = json_array();
    int r = list ? 0 : -1, n = USAGE_BUCKETS;
    while (n > 0 && window->charged_us[n - 1] <= 0)
        n--;
    for (int i = 0; i < n && r == 0; i++)
        r = json_array_append_new(list, json_integer((json_int_t)window->charged_us[i]));
    return json_object_set_new(object, "charged_us", list) < 0 ? -1 : r;
}

static int encode_users(json_t *object, const struct advance *advance)
{
    json_t *users = json_array();
    int r = users ? 0 : -1;
    for (int i = 0; i < advance->n_users && r == 0; i++)
        r = json_array_append_new(users, json_integer(advance->users[i]));
    return json_object_set_new(object, "users", users) < 0 ? -1 : r;
}

static int encode_gpus(json_t *object, const struct event *event)
{
    if (event->gpus.keeps_samples && json_object_set_new(object, "keeps_samples", json_true()) < 0)
        return -1;
    return fields_encode_list(object, "gpus", &gpu_identity_fields, event->gpus.list,
        sizeof *event->gpus.list, event->gpus.n);
}

static int encode_body(json_t *object, const struct event *event)
{
    const struct core_sample *sample = &event->sample;
    const struct task_request *request = &event->submit.request;
    int r = 0;
    if (event->kind == EVENT_GPUS)
        r = encode_gpus(object, event);
    else if (event->kind == EVENT_PLACE)
        r = encode_indices(object, event->place.gpus, event->place.n);
    else if (names_destination(event))
        r = encode_indices(object, event->yield.gpus, event->yield.n);
    else if (event->kind == EVENT_FIFO)
        r = encode_free(object, event->fifo.free_us, event->fifo.n);
    else if (event->kind == EVENT_STARTED && event->started.by_streams)
        r = json_object_set_new(object, "sharing", json_string(sharing_name(SHARING_STREAMS)));
    if (r == 0)
        r = fields_encode(object, &event_fields[event->kind], event);
    if (r == 0 && event->kind == EVENT_SUBMIT && request->gpu_kind)
        r = json_object_set_new(object, "gpu_kind", json_string(request->gpu_kind));
    if (r == 0 && event->kind == EVENT_SUBMIT && request->n_after)
        r = fields_encode_list(object, "after", &dependency_fields, request->after,
            sizeof *request->after, request->n_after);
    if (r == 0 && event->kind == EVENT_RESERVE)
        r = encode_users(object, &event->reserve);
    if (r == 0 && event->kind == EVENT_USAGE && event->usage.window.length_us)
        r = encode_window(object, &event->usage.window);
    if (r == 0 && event->kind == EVENT_UPDATE && event->update.n_after)
        r = fields_encode_list(object, "after", &dependency_fields, event->update.after,
            sizeof *event->update.after, event->update.n_after);
    if (r == 0 && event->kind == EVENT_SUBMIT && event->submit.elements)
        r = encode_array(object, event);
    if (r == 0 && event->kind == EVENT_SAMPLE && sample->n_tasks)
        r = fields_encode_list(object, "tasks", &task_memory_fields, sample->tasks,
            sizeof *sample->tasks, sample->n_tasks);
    return r;
}

int event_encode(const struct event *event, struct fault *fault, json_t **ret_body)
{
    json_t *object = json_object();
    if (object && encode_body(object, event) == 0) {
        *ret_body = object;
        return 0;
    }
    json_decref(object);
    return fault_set(fault, EINVAL,
        "%s cannot be written as JSON: a text in it is not UTF-8, or memory is out",
        event_name(event->kind));
}

/* ---- reading ---- */

static int decode_gpus(const struct decoding *decoding, const json_t *body, struct event *event)
{
    void *gpus;
    int r = fields_decode_list(decoding, json_object_get(body, "gpus"), "gpus",
        &gpu_identity_fields, sizeof *event->gpus.list, &gpus, &event->gpus.n);
    if (r == 0)
        event->gpus.list = gpus;
    event->gpus.keeps_samples = json_is_true(json_object_get(body, "keeps_samples"));
    return r;
}

static int decode_indices(
    const struct decoding *decoding, const json_t *body, const int **ret_gpus, int *ret_n)
{
    const json_t *list = json_object_get(body, "gpus");
    void *entries;
    int n, r = fields_open_list(decoding, list, "gpus", sizeof **ret_gpus, &entries, &n);
    if (r < 0)
        return r;
    int *gpus = entries;
    for (int i = 0; i < n; i++) {
        json_int_t index = json_integer_value(json_array_get(list, (size_t)i));
        if (!json_is_integer(json_array_get(list, (size_t)i)) || index < 0 || index > INT_MAX) {
            free(gpus);
            return fault_set(decoding->fault, EINVAL, "gpus, entry %d: not the index of a GPU", i);
        }
        gpus[i] = (int)index;
    }
    *ret_gpus = gpus;
    *ret_n = n;
    return 0;
}

static int decode_sample_tasks(
    const struct decoding *decoding, const json_t *body, struct event *event)
{
    const json_t *list = json_object_get(body, "tasks");
    void *tasks;
    int r = list ? fields_decode_list(decoding, list, "tasks", &task_memory_fields,
                       sizeof *event->sample.tasks, &tasks, &event->sample.n_tasks)
                 : 0;
    if (list && r == 0)
        event->sample.tasks = tasks;
    return r;
}

static int decode_after(const struct decoding *decoding, const json_t *body,
    const struct dependency **ret_after, int *ret_n)
{
    const json_t *list = json_object_get(body, "after");
    void *after;
    int r = list ? fields_decode_list(decoding, list, "after", &dependency_fields,
                       sizeof **ret_after, &after, ret_n)
                 : 0;
    if (list && r == 0)
        *ret_after = after;
    return r;
}

static int decode_users(
    const struct decoding *decoding, const json_t *body, struct advance *advance)
{
    const json_t *list = json_object_get(body, "users"), *each;
    size_t i;
    json_array_foreach(list, i, each) {
        json_int_t uid = json_integer_value(each);
        if (i == ADVANCE_USERS_MAX || !json_is_integer(each) || uid < 0 || uid > UINT32_MAX)
            return fault_set(decoding->fault, EINVAL, "users: not a list of up to %d user ids",
                ADVANCE_USERS_MAX);
        advance->users[advance->n_users++] = (uint32_t)uid;
    }
    return 0;
}

static int decode_window(
    const struct decoding *decoding, const json_t *body, struct usage_window *window)
{
    const json_t *list = json_object_get(body, "charged_us"), *each;
    size_t i;
    json_array_foreach(list, i, each) {
        json_int_t charged_us = json_integer_value(each);
        if (i == USAGE_BUCKETS || !json_is_integer(each) || charged_us < 0 ||
            charged_us > EVENT_NUMBER_MAX)
            return fault_set(decoding->fault, EINVAL,
                "charged_us: not a list of up to %d times in microseconds", USAGE_BUCKETS);
        window->charged_us[i] = (double)charged_us;
    }
    return 0;
}

static int decode_free(const struct decoding *decoding, const json_t *body, struct event *event)
{
    const json_t *list = json_object_get(body, "free_us"), *each;
    void *entries;
    size_t i;
    int r = fields_open_list(
        decoding, list, "free_us", sizeof *event->fifo.free_us, &entries, &event->fifo.n);
    if (r < 0)
        return r;
    int64_t *free_us = entries;
    json_array_foreach(list, i, each) {
        free_us[i] = json_integer_value(each);
        if (!json_is_integer(each) || free_us[i] < 0 || free_us[i] > EVENT_NUMBER_MAX) {
            free(free_us);
            return fault_set(
                decoding->fault, EINVAL, "free_us, entry %d: not a time in microseconds", (int)i);
        }
    }
    event->fifo.free_us = free_us;
    return 0;
}

static int64_t count_elements(const struct array_run *runs, int n)
{
    int64_t count = 0;
    for (int i = 0; i < n; i++)
        count += runs[i].count;
    return count;
}

static void fill_elements(const struct array_run *runs, int n, struct array_element *elements)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < runs[i].count; k++)
            *elements++ = (struct array_element){(uint64_t)(runs[i].task + k),
                (int)((runs[i].index + (int64_t)k * runs[i].step) % ARRAY_NUMBER_MAX)};
}

static int decode_array(const struct decoding *decoding, const json_t *body, struct event *event)
{
    const json_t *list = json_object_get(body, "array");
    void *runs;
    int n;
    int r = list ? fields_decode_list(decoding, list, "array", &array_run_fields,
                       sizeof(struct array_run), &runs, &n)
                 : 0;
    if (!list || r < 0)
        return r;
    int64_t count = count_elements(runs, n);
    struct array_element *elements = count <= ARRAY_ELEMENTS_MAX
                                         ? calloc((size_t)count + 1, sizeof *elements)
                                         : NULL;
    if (elements)
        fill_elements(runs, n, elements);
    free(runs);
    if (!elements)
        return fault_set(
            decoding->fault, EINVAL, "array: more than %d tasks, or no memory", ARRAY_ELEMENTS_MAX);
    event->submit.elements = elements;
    event->submit.n_elements = (int)count;
    return 0;
}

/* The kinds are copied, for event_release to free. */
static int decode_gpu_kind(
    const struct decoding *decoding, const json_t *body, struct task_request *request)
{
    static const struct field field = {
        .key = "gpu_kind", .type = FIELD_TEXT, .presence = OPTIONAL, .max = TASK_GPU_LIST_SIZE};
    char kinds[TASK_GPU_LIST_SIZE] = "";
    int r = field_decode(decoding, &field, json_object_get(body, field.key), kinds);
    if (r < 0 || !*kinds)
        return r;
    request->gpu_kind = strdup(kinds);
    return request->gpu_kind ? 0 : fault_set(decoding->fault, ENOMEM, "out of memory");
}

static int decode_submit(const struct decoding *decoding, const json_t *body, struct event *event)
{
    struct task_request *request = &event->submit.request;
    int r = decode_gpu_kind(decoding, body, request);
    if (r == 0)
        r = decode_after(decoding, body, &request->after, &request->n_after);
    if (r == 0)
        r = decode_array(decoding, body, event);
    if (r < 0)
        event_release(event);
    return r;
}

/* An attempt that was placed as an MPS client, but got no server. */
static int decode_started(const struct decoding *decoding, const json_t *body, struct event *event)
{
    static const struct field field = {
        .key = "sharing", .type = FIELD_NAME, .presence = OPTIONAL, .names = &event_sharing_names};
    int sharing = SHARING_AUTO;
    int r = field_decode(decoding, &field, json_object_get(body, "sharing"), &sharing);
    event->started.by_streams = r == 0 && sharing == SHARING_STREAMS;
    return r;
}

int event_decode(
    const json_t *body, store_find_policy *find_policy, struct fault *fault, struct event *event)
{
    const struct decoding decoding = {find_policy, fault};
    if (!json_is_object(body))
        return fault_set(fault, EINVAL, "not a JSON object");
    int r = fields_decode(&decoding, &event_fields[event->kind], body, event);
    if (r < 0)
        return r;
    switch (event->kind) {
    case EVENT_SUBMIT:
        return decode_submit(&decoding, body, event);
    case EVENT_RESERVE:
        return decode_users(&decoding, body, &event->reserve);
    case EVENT_USAGE:
        return decode_window(&decoding, body, &event->usage.window);
    case EVENT_UPDATE:
        return decode_after(&decoding, body, &event->update.after, &event->update.n_after);
    case EVENT_GPUS:
        return decode_gpus(&decoding, body, event);
    case EVENT_FIFO:
        return decode_free(&decoding, body, event);
    case EVENT_PLACE:
        return decode_indices(&decoding, body, &event->place.gpus, &event->place.n);
    case EVENT_SUSPENDING:
        if (!json_object_get(body, "gpus"))
            return 0;
        return decode_indices(&decoding, body, &event->yield.gpus, &event->yield.n);
    case EVENT_MOVE:
    case EVENT_MOVING:
    case EVENT_RESUMING:
        return decode_indices(&decoding, body, &event->yield.gpus, &event->yield.n);
    case EVENT_SAMPLE:
        return decode_sample_tasks(&decoding, body, event);
    case EVENT_STARTED:
        return decode_started(&decoding, body, event);
    default:
        return 0;
    }
}
