/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format has processes with threads, which have slices. Here a GPU is a process, a task on it a
 * thread; a first process is the queue:
 *
 *     Queue      12 resnet50 (ada)    [ waits ]              [ waits ]
 *     GPU 0      12 resnet50 (ada)             [ attempt 1 ]x
 *                memory (MiB)                  ▁▃▅▇▇▇▇▇▇▇▇▇▇
 *     GPU 1      12 resnet50 (ada)                                    [ attempt 2 [ suspended ]   ]
 *
 * An interruption is a slice within its attempt. Where the task goes on elsewhere the attempt's
 * slice ends with it, another begins on the new GPU, and an arrow (a flow) leads there. Times are
 * microseconds since 1970. What is not known, such as a counter without a sample, is left out.
 */
#include "cli/chrome_trace.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "cli/task_view.h"

enum { QUEUE_PROCESS = 1, FIRST_GPU_PROCESS = 2 };

struct trace_writer {
    const struct chrome_trace_input *input;
    FILE *out;
    json_t *processes; /* UUID of a GPU -> its number */
    json_t *threads;   /* "PROCESS TASK" -> true: its name is written */
    int flows;         /* arrows so far */
    bool any, failed;
};

/* A task on one list of GPUs, from one moment to another. */
struct stay {
    const json_t *task, *gpus, *uuids;
    double since, until;
    json_t *details; /* borrowed */
    const char *name;
};

static double clip_to_input(const struct trace_writer *writer, double at)
{
    return fmax(writer->input->since, fmin(writer->input->until, at));
}

static bool is_within(const struct trace_writer *writer, double since, double until)
{
    return until > writer->input->since && since < writer->input->until;
}

/* Slices that end together do so to the microsecond: their lengths are differences of these. */
static json_int_t to_microseconds(double seconds)
{
    return (json_int_t)llround(seconds * 1e6);
}

/* Takes over the event. */
static void write_event(struct trace_writer *writer, json_t *event)
{
    fputs(writer->any ? ",\n" : "\n", writer->out);
    writer->any = true;
    writer->failed |= json_dumpf(event, writer->out, JSON_COMPACT | JSON_REAL_PRECISION(15)) < 0;
    json_decref(event);
}

/* ---- processes and threads ---- */

/* Names a process (`thread` 0) or a thread, and its place in the list. */
static void write_name(
    struct trace_writer *writer, int process, json_int_t thread, const char *name)
{
    const char *kind = thread ? "thread" : "process";
    char event[32];
    snprintf(event, sizeof event, "%s_name", kind);
    write_event(writer, json_pack("{s:s, s:s, s:i, s:I, s:{s:s}}", "ph", "M", "name", event, "pid",
                            process, "tid", thread, "args", "name", name));
    snprintf(event, sizeof event, "%s_sort_index", kind);
    write_event(
        writer, json_pack("{s:s, s:s, s:i, s:I, s:{s:I}}", "ph", "M", "name", event, "pid", process,
                    "tid", thread, "args", "sort_index", thread ? thread : (json_int_t)process));
}

/* The process of a GPU; a GPU that is no more gets one when it is first named. */
static int find_process(struct trace_writer *writer, const char *uuid, const char *index)
{
    const json_t *known = json_object_get(writer->processes, uuid);
    char name[160];
    if (known)
        return (int)json_integer_value(known);
    int process = FIRST_GPU_PROCESS + (int)json_object_size(writer->processes);
    json_object_set_new(writer->processes, uuid, json_integer(process));
    snprintf(name, sizeof name, "GPU %s", index);
    write_name(writer, process, 0, name);
    return process;
}

static void name_gpus(struct trace_writer *writer)
{
    size_t i;
    json_t *gpu;
    json_array_foreach(writer->input->gpus, i, gpu) {
        char text[160];
        snprintf(text, sizeof text, "%s %s", member_text(gpu, "index", "?"),
            member_text(gpu, "name", ""));
        find_process(writer, member_text(gpu, "uuid", ""), text);
    }
}

/* The thread of a task in a process is its id. */
static json_int_t find_thread(struct trace_writer *writer, int process, const json_t *task)
{
    json_int_t id = json_integer_value(json_object_get(task, "id"));
    char key[48], name[400];
    snprintf(key, sizeof key, "%d %lld", process, (long long)id);
    if (!json_object_get(writer->threads, key)) {
        json_object_set_new(writer->threads, key, json_true());
        snprintf(name, sizeof name, "%lld %s (%s)", (long long)id, member_text(task, "name", ""),
            member_text(task, "user", "?"));
        text_mend(name);
        write_name(writer, process, id, name);
    }
    return id;
}

/* ---- slices ---- */

static void write_slice(struct trace_writer *writer, int process, const json_t *task,
    const char *name, double since, double until, json_t *details)
{
    if (!is_within(writer, since, until))
        return;
    json_int_t thread = find_thread(writer, process, task);
    double begin = clip_to_input(writer, since), end = clip_to_input(writer, until);
    write_event(
        writer, json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:O}", "ph", "X", "cat", "task",
                    "name", name, "pid", process, "tid", thread, "ts", to_microseconds(begin),
                    "dur", to_microseconds(end) - to_microseconds(begin), "args", details));
}

static void write_instant(
    struct trace_writer *writer, int process, const json_t *task, const char *name, double at)
{
    if (isnan(at) || at < writer->input->since || at > writer->input->until)
        return;
    write_event(writer, json_pack("{s:s, s:s, s:s, s:s, s:i, s:I, s:I}", "ph", "i", "s", "t", "cat",
                            "task", "name", name, "pid", process, "tid",
                            find_thread(writer, process, task), "ts", to_microseconds(at)));
}

/* One slice on each GPU of the stay. */
static void write_stay(struct trace_writer *writer, const struct stay *stay)
{
    size_t i;
    json_t *uuid;
    json_array_foreach(stay->uuids, i, uuid) {
        const char *index = json_string_value(json_array_get(stay->gpus, i));
        int process = find_process(writer, json_string_value(uuid), index ? index : "?");
        write_slice(
            writer, process, stay->task, stay->name, stay->since, stay->until, stay->details);
    }
}

/* An arrow from an interruption of one stay to the begin of another, between their first GPUs. */
static void write_arrow(
    struct trace_writer *writer, const struct stay *interrupted, const struct stay *to)
{
    const struct stay *const ends[] = {interrupted, to};
    static const char *const phases[] = {"s", "f"};
    const double at[] = {interrupted->since, to->since};
    if (at[0] < writer->input->since || at[1] > writer->input->until)
        return;
    writer->flows++;
    for (int i = 0; i < 2; i++) {
        const char *uuid = json_string_value(json_array_get(ends[i]->uuids, 0));
        if (!uuid)
            return;
        int process = find_process(writer, uuid, "?");
        json_t *event = json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:I}", "ph", phases[i], "cat",
            "move", "name", "move", "id", writer->flows, "pid", process, "tid",
            find_thread(writer, process, to->task), "ts", to_microseconds(at[i]));
        if (i == 1)
            json_object_set_new(event, "bp", json_string("e"));
        write_event(writer, event);
    }
}

/* ---- attempts ---- */

static double number_or_now(
    const struct trace_writer *writer, const json_t *object, const char *key)
{
    return member_number(object, key, writer->input->until);
}

/* The interruptions of an attempt, in order: each is a slice, and may lead to other GPUs. */
static void write_stays(struct trace_writer *writer, const json_t *attempt, struct stay *stay)
{
    const double ended = stay->until;
    size_t i;
    json_t *interruption;
    json_array_foreach(json_object_get(attempt, "interruptions"), i, interruption) {
        const json_t *uuids = json_object_get(interruption, "gpu_uuids");
        struct stay pause = *stay;
        pause.name = member_text(interruption, "kind", "interrupted");
        pause.since = member_number(interruption, "since", ended);
        pause.until = number_or_now(writer, interruption, "until");
        pause.details = json_pack("{s:s}", "reason", member_text(interruption, "reason", ""));
        if (json_array_size(uuids) && !json_equal(uuids, stay->uuids)) {
            struct stay next = *stay;
            stay->until = pause.until;
            next.since = pause.until;
            next.gpus = json_object_get(interruption, "gpus");
            next.uuids = uuids;
            write_stay(writer, stay);
            write_arrow(writer, &pause, &next);
            *stay = next;
        }
        write_stay(writer, &pause);
        json_decref(pause.details);
    }
    stay->until = ended;
    write_stay(writer, stay);
}

static void write_attempt(
    struct trace_writer *writer, const json_t *task, size_t number, const json_t *attempt)
{
    const char *reason = member_text(attempt, "reason", NULL);
    char name[48];
    snprintf(name, sizeof name, "attempt %zu", number + 1);
    struct stay stay = {
        .task = task,
        .gpus = json_object_get(attempt, "gpus"),
        .uuids = json_object_get(attempt, "gpu_uuids"),
        .since = number_or_now(writer, attempt, "started_at"),
        .until = number_or_now(writer, attempt, "ended_at"),
        .name = name,
    };
    stay.details = json_pack("{s:O?, s:O?, s:O?, s:O?, s:O?, s:O?}", "task",
        json_object_get(task, "name"), "user", json_object_get(task, "user"), "sharing",
        json_object_get(task, "sharing"), "ended", json_object_get(attempt, "reason"), "exit_code",
        json_object_get(attempt, "exit_code"), "peak (MiB)", json_object_get(task, "mem_peak_mib"));
    write_stays(writer, attempt, &stay);
    if (reason && strcmp(reason, "None") != 0 && json_array_size(stay.uuids))
        write_instant(writer,
            find_process(writer, json_string_value(json_array_get(stay.uuids, 0)), "?"), task,
            reason, stay.until);
    json_decref(stay.details);
}

/* ---- tasks ---- */

/* From `since` to the start of the next attempt. */
static void write_wait(
    struct trace_writer *writer, const json_t *task, double since, double until, const char *why)
{
    json_t *details = json_pack(
        "{s:s, s:O?}", "why", why, "reason", json_object_get(task, "reason_text"));
    if (!isnan(since))
        write_slice(writer, QUEUE_PROCESS, task, "waits", since, until, details);
    json_decref(details);
}

static void write_task(struct trace_writer *writer, const json_t *task)
{
    const json_t *attempts = json_object_get(task, "attempts");
    const char *state = member_text(task, "state", ""), *why = "submitted";
    double waits_since = member_number(task, "submitted_at", NAN);
    size_t i;
    json_t *attempt;
    write_instant(writer, QUEUE_PROCESS, task, "submitted", waits_since);
    json_array_foreach(attempts, i, attempt) {
        write_wait(writer, task, waits_since, number_or_now(writer, attempt, "started_at"), why);
        write_attempt(writer, task, i, attempt);
        waits_since = number_or_now(writer, attempt, "ended_at");
        why = member_text(attempt, "reason", "");
    }
    if (strcmp(state, "PENDING") == 0)
        write_wait(writer, task, waits_since, writer->input->until, why);
    else if (json_array_size(attempts) == 0 && member_number(task, "ended_at", NAN) > 0)
        write_wait(writer, task, waits_since, member_number(task, "ended_at", NAN), why);
}

static bool is_shown(const struct trace_writer *writer, const json_t *task)
{
    return is_within(
        writer, member_number(task, "submitted_at", 0), number_or_now(writer, task, "ended_at"));
}

/* ---- counters ---- */

static const struct counter {
    const char *key, *name;
    double unit; /* by which the value is multiplied */
} counters[] = {
    {"mem_used_mib", "memory (MiB)", 1},
    {"external_mem_mib", "memory of external processes (MiB)", 1},
    {"smact", "SM activity (%)", 100},
    {"dram_active", "memory bandwidth (%)", 100},
    {"power_w", "power (W)", 1},
    {"temperature_c", "temperature (C)", 1},
};

static void write_counter(
    struct trace_writer *writer, int process, const json_t *series, const struct counter *counter)
{
    const json_t *times = json_object_get(series, "times"),
                 *values = json_object_get(json_object_get(series, "values"), counter->key);
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value) {
        double at = json_number_value(json_array_get(times, i));
        if (!json_is_number(value) || at < writer->input->since || at > writer->input->until)
            continue;
        write_event(writer, json_pack("{s:s, s:s, s:i, s:I, s:{s:f}}", "ph", "C", "name",
                                counter->name, "pid", process, "ts", to_microseconds(at), "args",
                                "value", json_number_value(value) * counter->unit));
    }
}

static void write_series(struct trace_writer *writer, const json_t *series)
{
    const char *uuid = member_text(series, "uuid", NULL);
    if (!uuid || json_is_integer(json_object_get(series, "task")))
        return;
    int process = find_process(writer, uuid, member_text(series, "gpu", "?"));
    for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
        write_counter(writer, process, series, &counters[i]);
}

int chrome_trace_write(const struct chrome_trace_input *input, FILE *out)
{
    struct trace_writer writer = {
        .input = input, .out = out, .processes = json_object(), .threads = json_object()};
    size_t i;
    json_t *one;
    int shown = 0;
    fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"program\":\"colloc\"},\"traceEvents\":[",
        out);
    write_name(&writer, QUEUE_PROCESS, 0, "Queue");
    name_gpus(&writer);
    json_array_foreach(input->tasks, i, one) {
        if (!is_shown(&writer, one))
            continue;
        write_task(&writer, one);
        shown++;
    }
    json_array_foreach(input->series, i, one) {
        write_series(&writer, one);
    }
    fputs("\n]}\n", out);
    json_decref(writer.processes);
    json_decref(writer.threads);
    return writer.failed || ferror(out) ? -EIO : shown;
}
