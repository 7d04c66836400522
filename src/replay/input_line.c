/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each line is an envelope around the one JSON form of events (src/store/event_json.h): which call
 * of the core it records, the kind of event, its time and task. `answer` and `task` are left out
 * when they are 0. A first key that names the call makes files easy to search: `grep '^{"dec'`.
 */
#include "replay/input_line.h"

#include <errno.h>
#include <inttypes.h>

#include "replay/core_settings_json.h"
#include "replay/input_line_v1.h"
#include "store/event_json.h"

#define VERSION 2
#define BEGIN   "{\"colloc_inputs\":"

/* The key of an event's line; its value is the kind of the event. */
static const char *const event_keys[] = {
    [INPUT_LINE_APPLY] = "apply",
    [INPUT_LINE_STEP] = "input",
    [INPUT_LINE_DECISION] = "decision",
};

/* ---- writing ---- */

/* Writes the rest of the line, and releases the object. */
static int end_line(FILE *out, json_t *object)
{
    int r = json_dumpf(object, out, JSON_COMPACT);
    json_decref(object);
    fputs("}\n", out);
    return r < 0 || ferror(out) ? -EIO : 0;
}

static int write_settings(FILE *out, const char *before, const struct core_settings *settings)
{
    json_t *object = core_settings_encode(settings);
    if (!object)
        return -ENOMEM;
    fputs(before, out);
    return end_line(out, object);
}

int input_line_write_begin(FILE *out, const struct core_settings *settings)
{
    char before[64];
    snprintf(before, sizeof before, BEGIN "%d,\"settings\":", VERSION);
    return write_settings(out, before, settings);
}

int input_line_write_settings(FILE *out, const struct core_settings *settings)
{
    return write_settings(out, "{\"settings\":", settings);
}

int input_line_write_forget(FILE *out, uint64_t task)
{
    fprintf(out, "{\"forget\":%" PRIu64 "}\n", task);
    return ferror(out) ? -EIO : 0;
}

int input_line_write_event(FILE *out, enum input_line_kind kind, int answer,
    const struct event *event, struct fault *fault)
{
    json_t *body;
    int r = event_encode(event, fault, &body);
    if (r < 0)
        return r;
    fprintf(out, "{\"%s\":\"%s\",", event_keys[kind], event_name(event->kind));
    if (answer)
        fprintf(out, "\"answer\":%d,", answer);
    fprintf(out, "\"time_us\":%" PRId64 ",", event->time_us);
    if (event->task)
        fprintf(out, "\"task\":%" PRIu64 ",", event->task);
    fputs("\"event\":", out);
    return end_line(out, body);
}

/* ---- reading ---- */

/* An integer from 0 to `max`; 0 if the key is missing. */
static int get_integer(
    const json_t *object, const char *key, int64_t max, struct fault *fault, int64_t *ret_value)
{
    const json_t *value = json_object_get(object, key);
    *ret_value = json_integer_value(value);
    if (value && (!json_is_integer(value) || *ret_value < 0 || *ret_value > max))
        return fault_set(fault, EINVAL, "%s: not an integer in its range", key);
    return 0;
}

static int read_event(const json_t *object, store_find_policy *find_policy, struct fault *fault,
    struct input_line *line)
{
    const char *name = json_string_value(json_object_get(object, event_keys[line->kind]));
    int64_t answer = 0, task = 0;
    int r = get_integer(object, "answer", CORE_NOT_NOW, fault, &answer);
    if (r == 0)
        r = get_integer(object, "time_us", EVENT_NUMBER_MAX, fault, &line->event.time_us);
    if (r == 0)
        r = get_integer(object, "task", INT64_MAX, fault, &task);
    if (r < 0)
        return r;
    if (!json_object_get(object, "time_us"))
        return fault_set(fault, EINVAL, "time_us: missing");
    if (!name || event_parse_name(name, &line->event.kind) < 0)
        return fault_set(fault, EINVAL, "'%.40s' is no event", name ? name : "");
    line->answer = (int)answer;
    line->event.task = (uint64_t)task;
    line->body = json_incref(json_object_get(object, "event"));
    return event_decode(line->body, find_policy, fault, &line->event);
}

static int read_settings(const json_t *object, store_find_policy *find_policy, struct fault *fault,
    struct input_line *line)
{
    return core_settings_decode(
        json_object_get(object, "settings"), find_policy, fault, &line->settings);
}

static int read_object(const json_t *object, store_find_policy *find_policy, struct fault *fault,
    struct input_line *line)
{
    int64_t number = 0;
    int r = 0;
    for (int kind = INPUT_LINE_APPLY; kind <= INPUT_LINE_DECISION; kind++) {
        line->kind = (enum input_line_kind)kind;
        if (json_object_get(object, event_keys[kind]))
            return read_event(object, find_policy, fault, line);
    }
    if (json_object_get(object, "forget")) {
        line->kind = INPUT_LINE_FORGET;
        r = get_integer(object, "forget", INT64_MAX, fault, &number);
        line->task = (uint64_t)number;
        return r;
    }
    if (!json_object_get(object, "settings"))
        return fault_set(fault, EINVAL, "no line of recorded inputs");
    line->kind = INPUT_LINE_SETTINGS;
    if (json_object_get(object, "colloc_inputs")) {
        line->kind = INPUT_LINE_BEGIN;
        r = get_integer(object, "colloc_inputs", INT64_MAX, fault, &number);
        if (r == 0 && number != VERSION)
            return fault_set(fault, EINVAL,
                "recorded in form %" PRId64 ", by a newer colloc: this one reads 1 and %d", number,
                VERSION);
    }
    return r < 0 ? r : read_settings(object, find_policy, fault, line);
}

int input_line_read(struct span text, store_find_policy *find_policy, struct fault *fault,
    struct input_line *ret_line)
{
    json_error_t error;
    json_t *object = NULL;
    int r;
    *ret_line = (struct input_line){0};
    if (!span_starts(text, "{")) {
        r = input_line_v1_read(text, find_policy, fault, ret_line);
    } else {
        object = json_loadb(text.at, text.size, 0, &error);
        r = object ? read_object(object, find_policy, fault, ret_line)
                   : fault_set(fault, EINVAL, "no JSON: %.100s", error.text);
    }
    json_decref(object);
    if (r < 0)
        json_decref(ret_line->body);
    return r;
}

void input_line_release(struct input_line *line)
{
    bool has_event = line->kind == INPUT_LINE_APPLY || line->kind == INPUT_LINE_STEP ||
                     line->kind == INPUT_LINE_DECISION;
    if (has_event)
        event_release(&line->event);
    else
        core_settings_release(&line->settings);
    json_decref(line->body);
}

bool input_line_is_begin(struct span text)
{
    return span_starts(text, BEGIN) || span_starts(text, "colloc-inputs ");
}
