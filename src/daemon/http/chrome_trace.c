/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what tasks did as Chrome trace JSON. The format has processes with threads, which have
 * slices. Here a GPU is a process, a task on it a thread; a first process is the queue:
 *
 *     Queue      12 resnet50 (ada)    [ waits ]              [ waits ]
 *     GPU 0      12 resnet50 (ada)             [ attempt 1 ]x
 *                memory (MiB)                  ▁▃▅▇▇▇▇▇▇▇▇▇▇
 *     GPU 1      12 resnet50 (ada)                                    [ attempt 2 [ suspended ]   ]
 *
 * An interruption is a slice within its attempt. If the task continues on another GPU, the
 * attempt's slice ends with the interruption, another begins on the new GPU, and an arrow (a flow)
 * leads there. Times are microseconds since 1970. Unknown values, such as a counter without a
 * sample, are left out.
 *
 * Perfetto reads slices that begin at the same time in the file's order. It drops a slice that is
 * longer than the one before it, and an arrow that is before its slice. So an attempt's slices come
 * first, then those within them, then the arrows.
 */
#include "daemon/http/chrome_trace.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_member.h"
#include "base/text.h"

enum { QUEUE_PROCESS = 1, FIRST_GPU_PROCESS = 2 };

struct chrome_trace {
    double since, until; /* seconds since 1970 */
    FILE *out;
    char *text;
    size_t size;
    json_t *processes; /* UUID of a GPU -> its number */
    json_t *threads;   /* "PROCESS TASK" -> true: its name is written */
    int flows, tasks;  /* arrows and tasks so far */
    bool any, failed;
};

/* A task on one list of GPUs, from one moment to another. */
struct stay {
    const json_t *task, *gpus, *uuids;
    double since, until;
    json_t *details; /* borrowed */
    const char *name;
};

static double clip_to_input(const struct chrome_trace *trace, double at)
{
    return fmax(trace->since, fmin(trace->until, at));
}

static bool is_within(const struct chrome_trace *trace, double since, double until)
{
    return until > trace->since && since < trace->until;
}

/* Slices that end together do so to the microsecond: their lengths are differences of these. */
static json_int_t to_microseconds(double seconds)
{
    return (json_int_t)llround(seconds * 1e6);
}

/* Takes over the event. */
static void write_event(struct chrome_trace *trace, json_t *event)
{
    fputs(trace->any ? ",\n" : "\n", trace->out);
    trace->any = true;
    trace->failed |= json_dumpf(event, trace->out, JSON_COMPACT | JSON_REAL_PRECISION(15)) < 0;
    json_decref(event);
}

/* ---- processes and threads ---- */

/* Names a process (`thread` 0) or a thread, and its place in the list. */
static void write_name(struct chrome_trace *trace, int process, json_int_t thread, const char *name)
{
    const char *kind = thread ? "thread" : "process";
    char event[32];
    snprintf(event, sizeof event, "%s_name", kind);
    write_event(trace, json_pack("{s:s, s:s, s:i, s:I, s:{s:s}}", "ph", "M", "name", event, "pid",
                           process, "tid", thread, "args", "name", name));
    snprintf(event, sizeof event, "%s_sort_index", kind);
    write_event(
        trace, json_pack("{s:s, s:s, s:i, s:I, s:{s:I}}", "ph", "M", "name", event, "pid", process,
                   "tid", thread, "args", "sort_index", thread ? thread : (json_int_t)process));
}

/* The process of a GPU; a GPU that is no more gets one when it is first named. */
static int find_process(struct chrome_trace *trace, const char *uuid, const char *index)
{
    const json_t *known = json_object_get(trace->processes, uuid);
    char name[160];
    if (known)
        return (int)json_integer_value(known);
    int process = FIRST_GPU_PROCESS + (int)json_object_size(trace->processes);
    json_object_set_new(trace->processes, uuid, json_integer(process));
    snprintf(name, sizeof name, "GPU %s", index);
    write_name(trace, process, 0, name);
    return process;
}

void chrome_trace_add_gpu(struct chrome_trace *trace, const json_t *gpu)
{
    char text[160];
    snprintf(
        text, sizeof text, "%s %s", member_text(gpu, "index", "?"), member_text(gpu, "name", ""));
    find_process(trace, member_text(gpu, "uuid", ""), text);
}

/* The thread of a task in a process is its id. */
static json_int_t find_thread(struct chrome_trace *trace, int process, const json_t *task)
{
    json_int_t id = json_integer_value(json_object_get(task, "id"));
    char key[48], name[400];
    snprintf(key, sizeof key, "%d %lld", process, (long long)id);
    if (!json_object_get(trace->threads, key)) {
        json_object_set_new(trace->threads, key, json_true());
        snprintf(name, sizeof name, "%lld %s (%s)", (long long)id, member_text(task, "name", ""),
            member_text(task, "user", "?"));
        text_mend(name);
        write_name(trace, process, id, name);
    }
    return id;
}

/* ---- slices ---- */

static void write_slice(struct chrome_trace *trace, int process, const json_t *task,
    const char *name, double since, double until, json_t *details)
{
    if (!is_within(trace, since, until))
        return;
    json_int_t thread = find_thread(trace, process, task);
    double begin = clip_to_input(trace, since), end = clip_to_input(trace, until);
    write_event(
        trace, json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:O}", "ph", "X", "cat", "task",
                   "name", name, "pid", process, "tid", thread, "ts", to_microseconds(begin), "dur",
                   to_microseconds(end) - to_microseconds(begin), "args", details));
}

static void write_instant(
    struct chrome_trace *trace, int process, const json_t *task, const char *name, double at)
{
    if (isnan(at) || at < trace->since || at > trace->until)
        return;
    write_event(trace, json_pack("{s:s, s:s, s:s, s:s, s:i, s:I, s:I}", "ph", "i", "s", "t", "cat",
                           "task", "name", name, "pid", process, "tid",
                           find_thread(trace, process, task), "ts", to_microseconds(at)));
}

/* One slice on each GPU of the stay. */
static void write_stay(struct chrome_trace *trace, const struct stay *stay)
{
    size_t i;
    json_t *uuid;
    json_array_foreach(stay->uuids, i, uuid) {
        const char *index = json_string_value(json_array_get(stay->gpus, i));
        int process = find_process(trace, json_string_value(uuid), index ? index : "?");
        write_slice(
            trace, process, stay->task, stay->name, stay->since, stay->until, stay->details);
    }
}

/* An arrow from an interruption of one stay to the begin of another, between their first GPUs. */
static void write_arrow(
    struct chrome_trace *trace, const struct stay *interrupted, const struct stay *to)
{
    const struct stay *const ends[] = {interrupted, to};
    static const char *const phases[] = {"s", "f"};
    const double at[] = {interrupted->since, to->since};
    if (at[0] < trace->since || at[1] >= trace->until)
        return;
    trace->flows++;
    for (int i = 0; i < 2; i++) {
        const char *uuid = json_string_value(json_array_get(ends[i]->uuids, 0));
        if (!uuid)
            return;
        int process = find_process(trace, uuid, "?");
        json_t *event = json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:I}", "ph", phases[i], "cat",
            "move", "name", "move", "id", trace->flows, "pid", process, "tid",
            find_thread(trace, process, to->task), "ts", to_microseconds(at[i]));
        if (i == 1)
            json_object_set_new(event, "bp", json_string("e"));
        write_event(trace, event);
    }
}

/* ---- attempts ---- */

static double number_or_now(const struct chrome_trace *trace, const json_t *object, const char *key)
{
    return member_number(object, key, trace->until);
}

/*
 * An interruption of a stay: `ret_pause` is it as a stay on the same GPUs, without details, and
 * `ret_next` the stay after it, on other GPUs. Returns false where the task stays on the same ones.
 */
static bool read_interruption(const struct chrome_trace *trace, const json_t *interruption,
    const struct stay *stay, struct stay *ret_pause, struct stay *ret_next)
{
    const json_t *uuids = json_object_get(interruption, "gpu_uuids");
    *ret_pause = *ret_next = *stay;
    ret_pause->name = member_text(interruption, "kind", "interrupted");
    ret_pause->since = member_number(interruption, "since", stay->until);
    ret_pause->until = number_or_now(trace, interruption, "until");
    if (!json_array_size(uuids) || json_equal(uuids, stay->uuids))
        return false;
    ret_next->since = ret_pause->until;
    ret_next->gpus = json_object_get(interruption, "gpus");
    ret_next->uuids = uuids;
    return true;
}

/* The attempt's slices: one, or one on each list of GPUs where it was. */
static void write_stays(struct chrome_trace *trace, const json_t *attempt, struct stay stay)
{
    struct stay pause, next;
    size_t i;
    json_t *interruption;
    json_array_foreach(json_object_get(attempt, "interruptions"), i, interruption) {
        if (!read_interruption(trace, interruption, &stay, &pause, &next))
            continue;
        stay.until = pause.until;
        write_stay(trace, &stay);
        stay = next;
    }
    write_stay(trace, &stay);
}

/* Each is a slice within one of these, with an arrow where it leads to other GPUs. */
static void write_interruptions(struct chrome_trace *trace, const json_t *attempt, struct stay stay)
{
    struct stay pause, next;
    size_t i;
    json_t *interruption;
    json_array_foreach(json_object_get(attempt, "interruptions"), i, interruption) {
        bool is_move = read_interruption(trace, interruption, &stay, &pause, &next);
        pause.details = json_pack("{s:s}", "reason", member_text(interruption, "reason", ""));
        write_stay(trace, &pause);
        json_decref(pause.details);
        if (is_move)
            write_arrow(trace, &pause, &next);
        stay = next;
    }
}

static void write_attempt(
    struct chrome_trace *trace, const json_t *task, size_t number, const json_t *attempt)
{
    const char *reason = member_text(attempt, "reason", NULL);
    char name[48];
    snprintf(name, sizeof name, "attempt %zu", number + 1);
    struct stay stay = {
        .task = task,
        .gpus = json_object_get(attempt, "gpus"),
        .uuids = json_object_get(attempt, "gpu_uuids"),
        .since = number_or_now(trace, attempt, "started_at"),
        .until = number_or_now(trace, attempt, "ended_at"),
        .name = name,
    };
    stay.details = json_pack("{s:O?, s:O?, s:O?, s:O?, s:O?, s:O?}", "task",
        json_object_get(task, "name"), "user", json_object_get(task, "user"), "sharing",
        json_object_get(task, "sharing"), "ended", json_object_get(attempt, "reason"), "exit_code",
        json_object_get(attempt, "exit_code"), "peak (MiB)", json_object_get(task, "mem_peak_mib"));
    write_stays(trace, attempt, stay);
    write_interruptions(trace, attempt, stay);
    if (reason && strcmp(reason, "None") != 0 && json_array_size(stay.uuids))
        write_instant(trace,
            find_process(trace, json_string_value(json_array_get(stay.uuids, 0)), "?"), task,
            reason, stay.until);
    json_decref(stay.details);
}

/* ---- tasks ---- */

/* From `since` to the start of the next attempt. */
static void write_wait(
    struct chrome_trace *trace, const json_t *task, double since, double until, const char *why)
{
    json_t *details = json_pack(
        "{s:s, s:O?}", "why", why, "reason", json_object_get(task, "reason_text"));
    if (!isnan(since))
        write_slice(trace, QUEUE_PROCESS, task, "waits", since, until, details);
    json_decref(details);
}

void chrome_trace_add_task(struct chrome_trace *trace, const json_t *task)
{
    const json_t *attempts = json_object_get(task, "attempts");
    const char *state = member_text(task, "state", ""), *why = "submitted";
    double waits_since = member_number(task, "submitted_at", NAN);
    size_t i;
    json_t *attempt;
    if (!is_within(
            trace, isnan(waits_since) ? 0 : waits_since, number_or_now(trace, task, "ended_at")))
        return;
    trace->tasks++;
    write_instant(trace, QUEUE_PROCESS, task, "submitted", waits_since);
    json_array_foreach(attempts, i, attempt) {
        write_wait(trace, task, waits_since, number_or_now(trace, attempt, "started_at"), why);
        write_attempt(trace, task, i, attempt);
        waits_since = number_or_now(trace, attempt, "ended_at");
        why = member_text(attempt, "reason", "");
    }
    if (strcmp(state, "PENDING") == 0)
        write_wait(trace, task, waits_since, trace->until, why);
    else if (json_array_size(attempts) == 0 && member_number(task, "ended_at", NAN) > 0)
        write_wait(trace, task, waits_since, member_number(task, "ended_at", NAN), why);
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

/* There are many of them: they are written without a JSON object for each. */
static void write_counter(
    struct chrome_trace *trace, int process, const json_t *series, const struct counter *counter)
{
    const json_t *times = json_object_get(series, "times"),
                 *values = json_object_get(json_object_get(series, "values"), counter->key);
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value) {
        double at = json_number_value(json_array_get(times, i));
        if (!json_is_number(value) || at < trace->since || at > trace->until)
            continue;
        fprintf(trace->out,
            ",\n{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%d,\"ts\":%lld,\"args\":{\"value\":%.6g}}",
            counter->name, process, (long long)to_microseconds(at),
            json_number_value(value) * counter->unit);
    }
}

void chrome_trace_add_series(struct chrome_trace *trace, const json_t *series)
{
    const char *uuid = member_text(series, "uuid", NULL);
    if (!uuid || json_is_integer(json_object_get(series, "task")))
        return;
    int process = find_process(trace, uuid, member_text(series, "gpu", "?"));
    for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
        write_counter(trace, process, series, &counters[i]);
}

/* ---- the whole ---- */

struct chrome_trace *chrome_trace_create(double since, double until)
{
    struct chrome_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return NULL;
    trace->since = since;
    trace->until = until;
    trace->processes = json_object();
    trace->threads = json_object();
    trace->out = open_memstream(&trace->text, &trace->size);
    if (!trace->out || !trace->processes || !trace->threads) {
        chrome_trace_free(trace);
        return NULL;
    }
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", trace->out);
    write_name(trace, QUEUE_PROCESS, 0, "Queue");
    return trace;
}

size_t chrome_trace_size(const struct chrome_trace *trace)
{
    fflush(trace->out);
    return trace->size;
}

char *chrome_trace_end(struct chrome_trace *trace, const char *note)
{
    json_t *about = json_pack("{s:s, s:i}", "program", "colloc", "tasks", trace->tasks);
    if (*note)
        json_object_set_new(about, "note", json_string(note));
    fputs("\n],\"otherData\":", trace->out);
    trace->failed |= json_dumpf(about, trace->out, JSON_COMPACT) < 0;
    json_decref(about);
    fputs("}\n", trace->out);
    trace->failed |= ferror(trace->out) != 0;
    trace->failed |= fclose(trace->out) != 0;
    trace->out = NULL;
    char *text = trace->failed ? NULL : trace->text;
    if (text)
        trace->text = NULL;
    return text;
}

void chrome_trace_free(struct chrome_trace *trace)
{
    if (trace->out)
        fclose(trace->out);
    free(trace->text);
    json_decref(trace->processes);
    json_decref(trace->threads);
    free(trace);
}
