/* SPDX-License-Identifier: Apache-2.0 */
#include "store/event_json.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy.h"
#include "core/sharing_choice.h"

static const char *const needs[] = {
    [NEED_UNKNOWN] = "unknown",
    [NEED_PENDING] = "pending",
    [NEED_ESTIMATED] = "estimated",
    [NEED_DECLARED] = "declared",
};

static json_t *encode_gpus(const struct event *event)
{
    json_t *list = json_array();
    for (int i = 0; i < event->gpus.n; i++) {
        const struct gpu_identity *gpu = &event->gpus.list[i];
        json_array_append_new(list,
            json_pack("{s:s, s:s, s:s, s:I, s:b, s:b, s:o*, s:o*}", "uuid", gpu->uuid, "label",
                gpu->label, "name", gpu->name, "mem_total_bytes", (json_int_t)gpu->mem_total_bytes,
                "is_place", gpu->is_place, "is_mig_instance", gpu->is_mig_instance, "one_process",
                gpu->one_process ? json_true() : NULL, "is_gone",
                gpu->is_gone ? json_true() : NULL));
    }
    bool whole = json_array_size(list) == (size_t)event->gpus.n;
    json_t *body = whole ? json_pack("{s:O}", "gpus", list) : NULL;
    json_decref(list);
    return body;
}

/* What is not known has no key. */
static json_t *encode_reading(struct reading reading)
{
    return reading.valid ? json_real(reading.value) : NULL;
}

/* What is 0 when there is nothing to say is left out. */
static json_t *positive(int64_t value)
{
    return value > 0 ? json_integer(value) : NULL;
}

static json_t *encode_submit(const struct event *event)
{
    const struct task_request *request = &event->submit.request;
    const struct expectation *expect = &request->expect;
    return json_pack("{s:I, s:b, s:i, s:s*, s:b, s:s, s:s, s:I, s:I, s:o*, s:o*, s:o*, s:o*, s:o*}",
        "uid", (json_int_t)event->submit.uid, "held", event->submit.held, "gpus", request->gpus,
        "policy", request->policy ? request->policy->name : NULL, "exclusive", request->exclusive,
        "sharing", sharing_name(request->sharing), "need", needs[request->need.kind], "need_bytes",
        (json_int_t)request->need.bytes, "time_limit_us", (json_int_t)request->time_limit_us,
        "smact", encode_reading(expect->smact), "gract", encode_reading(expect->gract), "dram",
        encode_reading(expect->dram), "expected_us", positive(expect->time_us), "thread_percent",
        positive(request->thread_percent));
}

static json_t *encode_place(const struct event *event)
{
    json_t *list = json_array();
    for (int i = 0; i < event->place.n; i++)
        json_array_append_new(list, json_integer(event->place.gpus[i]));
    bool whole = json_array_size(list) == (size_t)event->place.n;
    const struct sharing_mode *share = &event->place.share;
    json_t *body = whole
                       ? json_pack("{s:O, s:b, s:s, s:s*, s:o*, s:o*}", "gpus", list, "whole",
                             event->place.exclusive, "sharing", sharing_name(share->sharing), "why",
                             share->reason == SHARE_AS_ASKED ? NULL
                                                             : sharing_reason_name(share->reason),
                             "thread_percent", positive(share->thread_percent), "mem_limit_bytes",
                             positive(share->mem_limit_bytes))
                       : NULL;
    json_decref(list);
    return body;
}

/* Logs of earlier versions lack ended_us, and so do ends of which no better time is known. */
static json_t *encode_exited(const struct event *event)
{
    const struct task_exit *exited = &event->exited;
    json_t *body = json_pack("{s:s, s:i, s:i}", "failure", failure_name(exited->failure), "code",
        exited->code, "signal", exited->signal);
    if (body && exited->ended_us)
        json_object_set_new(body, "ended_us", json_integer(exited->ended_us));
    return body;
}

static json_t *encode_body(const struct event *event)
{
    switch (event->kind) {
    case EVENT_GPUS:
        return encode_gpus(event);
    case EVENT_SUBMIT:
        return encode_submit(event);
    case EVENT_ESTIMATE:
        return json_pack("{s:s, s:I}", "need", needs[event->estimate.kind], "need_bytes",
            (json_int_t)event->estimate.bytes);
    case EVENT_EXITED:
        return encode_exited(event);
    case EVENT_STARTED:
        return json_pack(
            "{s:s*}", "sharing", event->started.by_streams ? sharing_name(SHARING_STREAMS) : NULL);
    case EVENT_PLACE:
        return encode_place(event);
    case EVENT_END:
        return json_pack("{s:s}", "state", task_state_name(event->end));
    default:
        return json_object();
    }
}

int event_encode(const struct event *event, struct fault *fault, json_t **ret_body)
{
    if (event->kind == EVENT_SAMPLE || event->kind == EVENT_TICK)
        return fault_set(fault, EINVAL, "%s is no event for the log", event_name(event->kind));
    *ret_body = encode_body(event);
    if (!*ret_body)
        return fault_set(fault, EINVAL,
            "%s cannot be written as JSON: a text in it is not UTF-8, or memory is out",
            event_name(event->kind));
    return 0;
}

static int get_integer(const json_t *object, const char *key, int64_t min, int64_t max,
    struct fault *fault, int64_t *ret_value)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        return fault_set(fault, EINVAL, "%s: not there, or no integer", key);
    *ret_value = json_integer_value(value);
    if (*ret_value < min || *ret_value > max)
        return fault_set(fault, EINVAL, "%s: %lld is out of range", key, (long long)*ret_value);
    return 0;
}

static int get_int(
    const json_t *object, const char *key, int min, int max, struct fault *fault, int *ret_value)
{
    int64_t value = 0;
    int r = get_integer(object, key, min, max, fault, &value);
    if (r == 0)
        *ret_value = (int)value;
    return r;
}

static int get_flag(const json_t *object, const char *key, struct fault *fault, bool *ret_value)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value))
        return fault_set(fault, EINVAL, "%s: not there, or neither true nor false", key);
    *ret_value = json_is_true(value);
    return 0;
}

static int get_text(
    const json_t *object, const char *key, struct fault *fault, const char **ret_text)
{
    *ret_text = json_string_value(json_object_get(object, key));
    return *ret_text ? 0 : fault_set(fault, EINVAL, "%s: not there, or no text", key);
}

static int copy_text(
    const json_t *object, const char *key, char *buffer, size_t size, struct fault *fault)
{
    const char *text;
    int r = get_text(object, key, fault, &text);
    if (r < 0)
        return r;
    size_t length = strlen(text);
    if (length >= size)
        return fault_set(fault, EINVAL, "%s: longer than %zu bytes", key, size - 1);
    memcpy(buffer, text, length + 1);
    return 0;
}

static int no_such_name(const char *key, const char *name, struct fault *fault)
{
    return fault_set(fault, EINVAL, "%s: '%.100s' is not known here", key, name);
}

static int get_need(const json_t *object, struct fault *fault, struct need *ret_need)
{
    const char *name;
    int r = get_integer(object, "need_bytes", 0, EVENT_NUMBER_MAX, fault, &ret_need->bytes);
    if (r == 0)
        r = get_text(object, "need", fault, &name);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        if (strcmp(needs[i], name) == 0) {
            ret_need->kind = (enum need_kind)i;
            return 0;
        }
    }
    return no_such_name("need", name, fault);
}

static int get_sharing(const json_t *object, struct fault *fault, enum sharing *ret_sharing)
{
    const char *name;
    int r = get_text(object, "sharing", fault, &name);
    if (r == 0 && sharing_parse(name, ret_sharing) < 0)
        r = no_such_name("sharing", name, fault);
    return r;
}

static int get_policy(const json_t *object, store_find_policy *find_policy, struct fault *fault,
    const struct policy **ret_policy)
{
    const char *name;
    *ret_policy = NULL;
    if (!json_object_get(object, "policy"))
        return 0;
    int r = get_text(object, "policy", fault, &name);
    if (r == 0 && !(*ret_policy = find_policy(name)))
        r = no_such_name("policy", name, fault);
    return r;
}

/* Fresh room for the entries of the list; *ret_n is their number. */
static int get_list(const json_t *object, const char *key, size_t entry_size, struct fault *fault,
    const json_t **ret_list, void **ret_room, int *ret_n)
{
    const json_t *list = json_object_get(object, key);
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > INT_MAX)
        return fault_set(fault, EINVAL, "%s: not there, or no list", key);
    void *room = calloc(n + 1, entry_size);
    if (!room)
        return fault_set(fault, ENOMEM, "out of memory");
    *ret_list = list;
    *ret_room = room;
    *ret_n = (int)n;
    return 0;
}

static int decode_gpu(const json_t *object, struct fault *fault, struct gpu_identity *gpu)
{
    int r = copy_text(object, "uuid", gpu->uuid, sizeof gpu->uuid, fault);
    if (r == 0)
        r = copy_text(object, "label", gpu->label, sizeof gpu->label, fault);
    if (r == 0)
        r = copy_text(object, "name", gpu->name, sizeof gpu->name, fault);
    if (r == 0)
        r = get_integer(
            object, "mem_total_bytes", 0, EVENT_NUMBER_MAX, fault, &gpu->mem_total_bytes);
    if (r == 0)
        r = get_flag(object, "is_place", fault, &gpu->is_place);
    if (r == 0)
        r = get_flag(object, "is_mig_instance", fault, &gpu->is_mig_instance);
    if (r == 0 && json_object_get(object, "one_process"))
        r = get_flag(object, "one_process", fault, &gpu->one_process);
    if (r == 0 && json_object_get(object, "is_gone"))
        r = get_flag(object, "is_gone", fault, &gpu->is_gone);
    return r;
}

static int decode_gpus(const json_t *body, struct fault *fault, struct event *event)
{
    const json_t *list;
    void *room;
    int n, r = get_list(body, "gpus", sizeof *event->gpus.list, fault, &list, &room, &n);
    if (r < 0)
        return r;
    struct gpu_identity *gpus = room;
    for (int i = 0; i < n; i++) {
        r = decode_gpu(json_array_get(list, (size_t)i), fault, &gpus[i]);
        if (r < 0) {
            free(gpus);
            return fault_prefix(fault, r, "gpus, entry %d", i);
        }
    }
    event->gpus.list = gpus;
    event->gpus.n = n;
    return 0;
}

static int get_share(
    const json_t *object, const char *key, struct fault *fault, struct reading *ret_reading)
{
    const json_t *value = json_object_get(object, key);
    *ret_reading = READING_NONE;
    if (!value)
        return 0;
    if (!json_is_number(value) || !(json_number_value(value) >= 0 && json_number_value(value) <= 1))
        return fault_set(fault, EINVAL, "%s: no number from 0 to 1", key);
    *ret_reading = reading_of(json_number_value(value));
    return 0;
}

static int get_expectation(
    const json_t *object, struct fault *fault, struct expectation *ret_expect)
{
    int r = get_share(object, "smact", fault, &ret_expect->smact);
    if (r == 0)
        r = get_share(object, "gract", fault, &ret_expect->gract);
    if (r == 0)
        r = get_share(object, "dram", fault, &ret_expect->dram);
    if (r == 0 && json_object_get(object, "expected_us"))
        r = get_integer(object, "expected_us", 1, EVENT_NUMBER_MAX, fault, &ret_expect->time_us);
    return r;
}

static int decode_submit(
    const json_t *body, store_find_policy *find_policy, struct fault *fault, struct event *event)
{
    struct task_request *request = &event->submit.request;
    int64_t uid = 0;
    int r = get_integer(body, "uid", 0, UINT32_MAX, fault, &uid);
    event->submit.uid = (uint32_t)uid;
    if (r == 0)
        r = get_flag(body, "held", fault, &event->submit.held);
    if (r == 0)
        r = get_int(body, "gpus", 1, INT_MAX, fault, &request->gpus);
    if (r == 0)
        r = get_policy(body, find_policy, fault, &request->policy);
    if (r == 0)
        r = get_flag(body, "exclusive", fault, &request->exclusive);
    if (r == 0)
        r = get_sharing(body, fault, &request->sharing);
    if (r == 0)
        r = get_need(body, fault, &request->need);
    if (r == 0)
        r = get_integer(body, "time_limit_us", 0, EVENT_NUMBER_MAX, fault, &request->time_limit_us);
    if (r == 0)
        r = get_expectation(body, fault, &request->expect);
    if (r == 0 && json_object_get(body, "thread_percent"))
        r = get_int(body, "thread_percent", 1, 100, fault, &request->thread_percent);
    return r;
}

static int decode_exited(const json_t *body, struct fault *fault, struct event *event)
{
    const char *name;
    int r = get_text(body, "failure", fault, &name);
    if (r == 0 && !failure_parse(name, &event->exited.failure))
        r = no_such_name("failure", name, fault);
    if (r == 0)
        r = get_int(body, "code", INT_MIN, INT_MAX, fault, &event->exited.code);
    if (r == 0)
        r = get_int(body, "signal", 0, INT_MAX, fault, &event->exited.signal);
    if (r == 0 && json_object_get(body, "ended_us"))
        r = get_integer(body, "ended_us", 1, INT64_MAX, fault, &event->exited.ended_us);
    return r;
}

static int decode_started(const json_t *body, struct fault *fault, struct event *event)
{
    enum sharing sharing;
    if (!json_object_get(body, "sharing"))
        return 0;
    int r = get_sharing(body, fault, &sharing);
    event->started.by_streams = r == 0 && sharing == SHARING_STREAMS;
    return r;
}

/* How an attempt shares: what stands in the log is one of the two ways. */
static int get_attempt_share(
    const json_t *object, struct fault *fault, struct sharing_mode *ret_share)
{
    const char *why;
    int r = get_sharing(object, fault, &ret_share->sharing);
    if (r == 0 && ret_share->sharing == SHARING_AUTO)
        r = no_such_name("sharing", "auto", fault);
    if (r == 0 && json_object_get(object, "why")) {
        r = get_text(object, "why", fault, &why);
        if (r == 0 && sharing_reason_parse(why, &ret_share->reason) < 0)
            r = no_such_name("why", why, fault);
    }
    if (r == 0 && json_object_get(object, "thread_percent"))
        r = get_int(object, "thread_percent", 1, 100, fault, &ret_share->thread_percent);
    if (r == 0 && json_object_get(object, "mem_limit_bytes"))
        r = get_integer(
            object, "mem_limit_bytes", 1, EVENT_NUMBER_MAX, fault, &ret_share->mem_limit_bytes);
    return r;
}

static int decode_place(const json_t *body, struct fault *fault, struct event *event)
{
    const json_t *list;
    void *room;
    int n, r = get_flag(body, "whole", fault, &event->place.exclusive);
    if (r == 0)
        r = get_attempt_share(body, fault, &event->place.share);
    if (r == 0)
        r = get_list(body, "gpus", sizeof *event->place.gpus, fault, &list, &room, &n);
    if (r < 0)
        return r;
    int *gpus = room;
    for (int i = 0; i < n; i++) {
        const json_t *index = json_array_get(list, (size_t)i);
        if (!json_is_integer(index) || json_integer_value(index) < 0 ||
            json_integer_value(index) > INT_MAX) {
            free(gpus);
            return fault_set(fault, EINVAL, "gpus, entry %d: not the index of a GPU", i);
        }
        gpus[i] = (int)json_integer_value(index);
    }
    event->place.gpus = gpus;
    event->place.n = n;
    return 0;
}

static int decode_end(const json_t *body, struct fault *fault, struct event *event)
{
    const char *name;
    int r = get_text(body, "state", fault, &name);
    if (r < 0)
        return r;
    for (int i = 0; i < TASK_STATES; i++) {
        if (task_state_is_done((enum task_state)i) &&
            strcmp(task_state_name((enum task_state)i), name) == 0) {
            event->end = (enum task_state)i;
            return 0;
        }
    }
    return no_such_name("state", name, fault);
}

int event_decode(
    const json_t *body, store_find_policy *find_policy, struct fault *fault, struct event *event)
{
    if (!json_is_object(body))
        return fault_set(fault, EINVAL, "no object");
    switch (event->kind) {
    case EVENT_GPUS:
        return decode_gpus(body, fault, event);
    case EVENT_SUBMIT:
        return decode_submit(body, find_policy, fault, event);
    case EVENT_ESTIMATE:
        return get_need(body, fault, &event->estimate);
    case EVENT_EXITED:
        return decode_exited(body, fault, event);
    case EVENT_STARTED:
        return decode_started(body, fault, event);
    case EVENT_PLACE:
        return decode_place(body, fault, event);
    case EVENT_END:
        return decode_end(body, fault, event);
    case EVENT_SAMPLE:
    case EVENT_TICK:
        return fault_set(fault, EINVAL, "%s is no event for the log", event_name(event->kind));
    default:
        return 0;
    }
}

void event_release(struct event *event)
{
    if (event->kind == EVENT_GPUS)
        free((void *)event->gpus.list);
    else if (event->kind == EVENT_PLACE)
        free((void *)event->place.gpus);
}
