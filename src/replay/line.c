/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/line.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "replay/settings.h"
#include "store/event_json.h"

#define BEGIN_WORDS "colloc-inputs 1 "

enum { TASKS_MAX = 65536 };

/* ---- writing ---- */

static int written(FILE *out)
{
    return ferror(out) ? -EIO : 0;
}

static int dump(FILE *out, json_t *body)
{
    int r = json_dumpf(body, out, JSON_COMPACT);
    json_decref(body);
    fputc('\n', out);
    return r < 0 ? -EIO : written(out);
}

int line_write_begin(FILE *out, const struct core_settings *settings, struct fault *fault)
{
    json_t *body = settings_encode(settings);
    if (!body)
        return fault_set(fault, ENOMEM, "out of memory");
    fputs(BEGIN_WORDS, out);
    return dump(out, body);
}

int line_write_settings(FILE *out, const struct core_settings *settings)
{
    json_t *body = settings_encode(settings);
    if (!body)
        return -ENOMEM;
    fputs("C ", out);
    return dump(out, body);
}

static void write_reading(FILE *out, struct reading value)
{
    if (value.valid)
        fprintf(out, "%.17g", value.value);
    else
        fputc('-', out);
}

/* The many: one line a second of each GPU. */
static int write_sample(FILE *out, int answer, const struct event *event)
{
    const struct core_sample *sample = &event->sample;
    const struct reading readings[] = {
        sample->mem_used_bytes, sample->smact, sample->utilisation, sample->external_processes};
    fprintf(out, "S %d %" PRId64 " %d %d", answer, event->time_us, sample->gpu,
        sample->lost | sample->faulty << 1);
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        fputc(' ', out);
        write_reading(out, readings[i]);
    }
    for (int i = 0; i < sample->n_tasks; i++) {
        fprintf(out, " %" PRIu64 ":", sample->tasks[i].task);
        write_reading(out, sample->tasks[i].mem_used_bytes);
    }
    fputc('\n', out);
    return written(out);
}

int line_write_event(
    FILE *out, enum line_kind kind, int answer, const struct event *event, struct fault *fault)
{
    json_t *body;
    if (event->kind == EVENT_SAMPLE)
        return write_sample(out, answer, event);
    if (event->kind == EVENT_TICK) {
        fprintf(out, "T %d %" PRId64 "\n", answer, event->time_us);
        return written(out);
    }
    int r = event_encode(event, fault, &body);
    if (r < 0)
        return r;
    if (kind == LINE_STEP)
        fprintf(out, "I %d", answer);
    else
        fputc(kind == LINE_APPLY ? 'A' : 'D', out);
    fprintf(
        out, " %" PRId64 " %" PRIu64 " %s ", event->time_us, event->task, event_name(event->kind));
    return dump(out, body);
}

int line_write_forget(FILE *out, uint64_t task)
{
    fprintf(out, "F %" PRIu64 "\n", task);
    return written(out);
}

/* ---- reading ---- */

/* The next word off the front; empty at the end. */
static struct span take_word(struct span *text)
{
    struct span word = {text->at, 0};
    while (word.size < text->size && text->at[word.size] != ' ')
        word.size++;
    size_t used = word.size < text->size ? word.size + 1 : word.size;
    *text = (struct span){text->at + used, text->size - used};
    return word;
}

static int take_integer(struct span *text, int64_t min, int64_t max, const char *what,
    struct fault *fault, int64_t *ret)
{
    char digits[32];
    struct span word = take_word(text);
    if (!span_copy(word, digits, sizeof digits) || parse_int64(digits, min, max, ret) < 0)
        return fault_set(fault, EINVAL, "%s: '%.*s' is no number for it", what,
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
    size_t room = 1;
    for (size_t i = 0; i < text.size; i++)
        room += text.at[i] == ':';
    if (room > TASKS_MAX)
        return fault_set(fault, EINVAL, "too many tasks on one GPU");
    sample->tasks = calloc(room, sizeof *sample->tasks);
    if (!sample->tasks)
        return fault_set(fault, ENOMEM, "out of memory");
    for (int r; text.size; sample->n_tasks++) {
        if ((r = read_sample_task(take_word(&text), fault, &sample->tasks[sample->n_tasks])) < 0) {
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
    *sample = (struct core_sample){0};
    int r = take_integer(&text, INT32_MIN, INT32_MAX, "GPU", fault, &gpu);
    if (r == 0)
        r = take_integer(&text, 0, 3, "health", fault, &health);
    for (size_t i = 0; i < sizeof readings / sizeof *readings && r == 0; i++)
        r = parse_reading(take_word(&text), fault, readings[i]);
    if (r < 0)
        return r;
    sample->gpu = (int)gpu;
    sample->lost = health & 1;
    sample->faulty = health & 2;
    return read_sample_tasks(text, fault, sample);
}

static int read_json(struct span text, struct fault *fault, json_t **ret)
{
    json_error_t error;
    *ret = json_loadb(text.at, text.size, 0, &error);
    return *ret ? 0 : fault_set(fault, EINVAL, "no JSON: %.100s", error.text);
}

static int read_logged(
    struct span text, store_find_policy *find_policy, struct fault *fault, struct event *event)
{
    char name[16];
    int64_t task;
    json_t *body;
    int r = take_integer(&text, 0, INT64_MAX, "task", fault, &task);
    if (r < 0)
        return r;
    event->task = (uint64_t)task;
    if (!span_copy(take_word(&text), name, sizeof name) || event_parse_name(name, &event->kind) < 0)
        return fault_set(fault, EINVAL, "'%s' is no event", name);
    r = read_json(text, fault, &body);
    if (r == 0)
        r = event_decode(body, find_policy, fault, event);
    json_decref(body);
    return r;
}

static int read_settings(
    struct span text, store_find_policy *find_policy, struct fault *fault, struct line *line)
{
    json_t *body;
    int r = read_json(text, fault, &body);
    if (r < 0)
        return r;
    r = settings_decode(body, find_policy, fault, &line->settings);
    json_decref(body);
    return r;
}

static int read_event(char letter, struct span text, store_find_policy *find_policy,
    struct fault *fault, struct line *line)
{
    int64_t answer = 0;
    int r = 0;
    line->kind = letter == 'A' ? LINE_APPLY : letter == 'D' ? LINE_DECISION : LINE_STEP;
    if (line->kind == LINE_STEP)
        r = take_integer(&text, 0, CORE_NOT_NOW, "answer", fault, &answer);
    line->answer = (int)answer;
    if (r == 0)
        r = take_integer(&text, 0, EVENT_NUMBER_MAX, "time", fault, &line->event.time_us);
    if (r < 0)
        return r;
    if (letter == 'S')
        return read_sample(text, fault, &line->event);
    if (letter != 'T')
        return read_logged(text, find_policy, fault, &line->event);
    line->event.kind = EVENT_TICK;
    return text.size ? fault_set(fault, EINVAL, "more than a tick") : 0;
}

int line_read(
    struct span text, store_find_policy *find_policy, struct fault *fault, struct line *ret_line)
{
    int64_t task;
    *ret_line = (struct line){0};
    if (span_starts(text, BEGIN_WORDS)) {
        size_t n = strlen(BEGIN_WORDS);
        ret_line->kind = LINE_BEGIN;
        return read_settings(
            (struct span){text.at + n, text.size - n}, find_policy, fault, ret_line);
    }
    struct span word = take_word(&text);
    if (word.size != 1 || !strchr("AIDSTFC", *word.at))
        return fault_set(fault, EINVAL, "no line of recorded inputs");
    if (*word.at == 'C') {
        ret_line->kind = LINE_SETTINGS;
        return read_settings(text, find_policy, fault, ret_line);
    }
    if (*word.at != 'F')
        return read_event(*word.at, text, find_policy, fault, ret_line);
    ret_line->kind = LINE_FORGET;
    int r = take_integer(&text, 0, INT64_MAX, "task", fault, &task);
    ret_line->task = r < 0 ? 0 : (uint64_t)task;
    return r;
}

void line_release(struct line *line)
{
    if (line->kind == LINE_BEGIN || line->kind == LINE_SETTINGS || line->kind == LINE_FORGET)
        return;
    if (line->event.kind == EVENT_SAMPLE)
        free(line->event.sample.tasks);
    else
        event_release(&line->event);
}
