/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is a letter and words after blanks. Events and settings are JSON at the end of the line,
 * in the form of today; samples and ticks are words.
 *
 *     colloc-inputs 1 {SETTINGS}                 the daemon started
 *     A TIME TASK KIND {EVENT}                   an event of the log, applied at the start
 *     I ANSWER TIME TASK KIND {EVENT}            an input, and what core_step returned
 *     S ANSWER TIME GPU HEALTH MEMORY SMACT UTILISATION FOREIGN [TASK:MEMORY ...]
 *                                                a sample; - for what is not known; HEALTH is 0,
 *                                                or the sum of 1 (lost) and 2 (faulty)
 *     T ANSWER TIME                              a tick
 *     D TIME TASK KIND {EVENT}                   a decision of the input before it
 *     C {SETTINGS}                               new settings
 *     F TASK                                     a task that has ended was forgotten
 *
 * Example: "S 0 1795204780303447 0 0 19140706304 - 0.74 0 1:19140706304" is a sample of GPU 0 whose
 * SMACT is not known, with 19140706304 bytes in use, all of task 1.
 */
#include "replay/input_line_v1.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/span_parts.h"
#include "base/units.h"
#include "replay/core_settings_json.h"
#include "store/event_json.h"

enum { SAMPLE_TASKS_MAX = 65536 }; /* chosen: far more than processes fit on a GPU */

/* ---- words ---- */

static int take_integer(struct span *text, int64_t min, int64_t max, const char *what,
    struct fault *fault, int64_t *ret)
{
    char digits[32];
    struct span word = span_take_until(text, ' ');
    if (!span_copy(word, digits, sizeof digits) || parse_int64(digits, min, max, ret) < 0)
        return fault_set(fault, EINVAL, "%s: '%.*s' is not a number in its range", what,
            word.size < 40 ? (int)word.size : 40, word.at);
    return 0;
}

static int parse_reading(struct span word, struct fault *fault, struct reading *ret)
{
    char digits[40], *end;
    *ret = READING_NONE;
    if (span_is(word, "-"))
        return 0;
    if (word.size == 0 || !span_copy(word, digits, sizeof digits))
        return fault_set(fault, EINVAL, "a reading is missing or too long");
    *ret = reading_of(strtod(digits, &end));
    return *end || !isfinite(ret->value) ? fault_set(fault, EINVAL, "'%s' is no reading", digits)
                                         : 0;
}

/* ---- samples ---- */

/* "1:19140706304" */
static int read_sample_task(struct span word, struct fault *fault, struct task_memory *ret)
{
    int64_t task = 0;
    const char *colon = memchr(word.at, ':', word.size);
    if (!colon)
        return fault_set(fault, EINVAL, "a task's memory is TASK:BYTES");
    struct span id = {word.at, (size_t)(colon - word.at)},
                value = {colon + 1, word.size - id.size - 1};
    int r = take_integer(&id, 1, INT64_MAX, "task", fault, &task);
    ret->task = (uint64_t)task;
    return r < 0 ? r : parse_reading(value, fault, &ret->mem_used_bytes);
}

static int read_sample_tasks(struct span text, struct fault *fault, struct core_sample *sample)
{
    size_t capacity = 1;
    for (size_t i = 0; i < text.size; i++)
        capacity += text.at[i] == ':';
    if (capacity > SAMPLE_TASKS_MAX)
        return fault_set(fault, EINVAL, "too many tasks on one GPU");
    sample->tasks = calloc(capacity, sizeof *sample->tasks);
    if (!sample->tasks)
        return fault_set(fault, ENOMEM, "out of memory");
    for (; text.size; sample->n_tasks++) {
        int r = read_sample_task(
            span_take_until(&text, ' '), fault, &sample->tasks[sample->n_tasks]);
        if (r < 0) {
            free(sample->tasks);
            return r;
        }
    }
    return 0;
}

static int read_sample(struct span text, struct fault *fault, struct event *event)
{
    struct core_sample *sample = &event->sample;
    struct reading *readings[] = {
        &sample->mem_used_bytes, &sample->smact, &sample->utilisation, &sample->external_processes};
    int64_t gpu, health;
    event->kind = EVENT_SAMPLE;
    int r = take_integer(&text, INT32_MIN, INT32_MAX, "GPU", fault, &gpu);
    if (r == 0)
        r = take_integer(&text, 0, 3, "health", fault, &health);
    for (size_t i = 0; i < ARRAY_SIZE(readings) && r == 0; i++)
        r = parse_reading(span_take_until(&text, ' '), fault, readings[i]);
    if (r < 0)
        return r;
    sample->gpu = (int)gpu;
    sample->lost = health & 1;
    sample->faulty = health & 2;
    return read_sample_tasks(text, fault, sample);
}

/* ---- events and settings ---- */

static int read_json(struct span text, struct fault *fault, json_t **ret)
{
    json_error_t error;
    *ret = json_loadb(text.at, text.size, 0, &error);
    return *ret ? 0 : fault_set(fault, EINVAL, "no JSON: %.100s", error.text);
}

/* "TASK KIND {EVENT}" */
static int read_json_event(
    struct span text, store_find_policy *find_policy, struct fault *fault, struct input_line *line)
{
    char name[16];
    int64_t task;
    int r = take_integer(&text, 0, INT64_MAX, "task", fault, &task);
    if (r < 0)
        return r;
    line->event.task = (uint64_t)task;
    if (!span_copy(span_take_until(&text, ' '), name, sizeof name) ||
        event_parse_name(name, &line->event.kind) < 0 || line->event.kind == EVENT_SAMPLE ||
        line->event.kind == EVENT_TICK)
        return fault_set(fault, EINVAL, "'%s' is no event", name);
    r = read_json(text, fault, &line->body);
    return r < 0 ? r : event_decode(line->body, find_policy, fault, &line->event);
}

static int read_settings(
    struct span text, store_find_policy *find_policy, struct fault *fault, struct input_line *line)
{
    json_t *object;
    int r = read_json(text, fault, &object);
    if (r == 0)
        r = core_settings_decode(object, find_policy, fault, &line->settings);
    json_decref(object);
    return r;
}

static int read_event(char letter, struct span text, store_find_policy *find_policy,
    struct fault *fault, struct input_line *line)
{
    int64_t answer = 0;
    int r = 0;
    line->kind = letter == 'A'   ? INPUT_LINE_APPLY
                 : letter == 'D' ? INPUT_LINE_DECISION
                                 : INPUT_LINE_STEP;
    if (line->kind == INPUT_LINE_STEP)
        r = take_integer(&text, 0, CORE_NOT_NOW, "answer", fault, &answer);
    line->answer = (int)answer;
    if (r == 0)
        r = take_integer(&text, 0, EVENT_NUMBER_MAX, "time", fault, &line->event.time_us);
    if (r < 0)
        return r;
    if (letter == 'S')
        return read_sample(text, fault, &line->event);
    if (letter != 'T')
        return read_json_event(text, find_policy, fault, line);
    line->event.kind = EVENT_TICK;
    return text.size ? fault_set(fault, EINVAL, "more than a tick") : 0;
}

/* ---- lines ---- */

int input_line_v1_read(struct span text, store_find_policy *find_policy, struct fault *fault,
    struct input_line *ret_line)
{
    int64_t task = 0;
    if (span_starts(text, INPUT_LINE_V1_BEGIN)) {
        size_t n = strlen(INPUT_LINE_V1_BEGIN);
        ret_line->kind = INPUT_LINE_BEGIN;
        return read_settings(
            (struct span){text.at + n, text.size - n}, find_policy, fault, ret_line);
    }
    struct span word = span_take_until(&text, ' ');
    if (word.size != 1 || !strchr("AIDSTFC", *word.at))
        return fault_set(fault, EINVAL, "no line of recorded inputs");
    if (*word.at == 'C') {
        ret_line->kind = INPUT_LINE_SETTINGS;
        return read_settings(text, find_policy, fault, ret_line);
    }
    if (*word.at != 'F')
        return read_event(*word.at, text, find_policy, fault, ret_line);
    ret_line->kind = INPUT_LINE_FORGET;
    int r = take_integer(&text, 0, INT64_MAX, "task", fault, &task);
    ret_line->task = (uint64_t)task;
    return r;
}
