/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ways work on whole reports: the encoder compares two of them, the decoder copies one and
 * writes what has changed into the copy. So a text that turns out wrong halfway leaves nothing
 * behind.
 *
 * A GPU is "replaced", that is sent whole, when something other than a reading has changed: a
 * process has come or gone, or is of another job; the driver reports trouble, or none any more.
 */
#include "nodelink/node_changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "nodelink/node_report_json.h"

/* A reading that each GPU has, and its list. */
struct column {
    const char *key;
    size_t offset; /* in struct node_gpu */
    bool is_integer;
    double max;
};

static const struct column columns[] = {
    {"memory_used", offsetof(struct node_gpu, memory_used_bytes), true, BYTES_MAX},
    {"smact", offsetof(struct node_gpu, smact), false, 1},
    {"power", offsetof(struct node_gpu, power_w), false, POWER_MAX},
};

static struct reading *reading_in(const struct column *column, struct node_gpu *gpu)
{
    return (struct reading *)(void *)((char *)gpu + column->offset);
}

static struct reading reading_from(const struct column *column, const struct node_gpu *gpu)
{
    return *(const struct reading *)(const void *)((const char *)gpu + column->offset);
}

/* ---- what has changed ---- */

/* The processes that a report shows: a list that is not known to be complete is not sent. */
static size_t count_listed(const struct node_gpu *gpu)
{
    return gpu->processes_known ? gpu->n_processes : 0;
}

static uint32_t count_external(const struct node_gpu *gpu)
{
    return gpu->processes_known ? 0 : gpu->external_at_least;
}

static bool is_same_process(const struct node_process *a, const struct node_process *b)
{
    return a->pid == b->pid && a->job == b->job && a->is_claimed == b->is_claimed &&
           (!a->is_claimed || a->uid == b->uid);
}

/* Has nothing changed but readings? */
static bool is_same_gpu(const struct node_gpu *a, const struct node_gpu *b)
{
    if (!reading_equals(a->memory_total_bytes, b->memory_total_bytes) ||
        a->processes_known != b->processes_known || count_listed(a) != count_listed(b) ||
        count_external(a) != count_external(b) || strcmp(a->uuid, b->uuid) != 0 ||
        strcmp(a->trouble, b->trouble) != 0)
        return false;
    for (size_t i = 0; i < count_listed(a); i++)
        if (!is_same_process(&a->processes[i], &b->processes[i]))
            return false;
    return true;
}

static bool is_same_memory(const struct node_gpu *a, const struct node_gpu *b)
{
    for (size_t i = 0; i < count_listed(a); i++)
        if (!reading_equals(a->processes[i].memory_bytes, b->processes[i].memory_bytes))
            return false;
    return true;
}

static bool is_same_crashes(const struct node_report *a, const struct node_report *b)
{
    for (size_t i = 0; i < a->n_crashes && i < b->n_crashes; i++)
        if (a->crashes[i].job != b->crashes[i].job ||
            a->crashes[i].restarts != b->crashes[i].restarts ||
            strcmp(a->crashes[i].evidence, b->crashes[i].evidence) != 0)
            return false;
    return a->n_crashes == b->n_crashes;
}

static bool is_same_jobs(const struct node_report *a, const struct node_report *b)
{
    for (size_t i = 0; i < a->n_jobs && i < b->n_jobs; i++)
        if (!node_job_is_same(&a->jobs[i], &b->jobs[i]))
            return false;
    return a->n_jobs == b->n_jobs;
}

static bool is_of_same_gpus(const struct node_report *a, const struct node_report *b)
{
    for (size_t i = 0; i < a->n_gpus && i < b->n_gpus; i++)
        if (a->gpus[i].index != b->gpus[i].index)
            return false;
    return a->n_gpus == b->n_gpus && strcmp(a->node, b->node) == 0 && strcmp(a->boot, b->boot) == 0;
}

/* ---- encoding: each returns 0 or -1, as jansson's functions ---- */

static int add_column(json_t *object, const struct column *column, const struct node_report *base,
    const struct node_report *now)
{
    bool is_changed = false;
    for (size_t i = 0; i < now->n_gpus; i++)
        is_changed |= !reading_equals(
            reading_from(column, &base->gpus[i]), reading_from(column, &now->gpus[i]));
    if (!is_changed)
        return 0;
    json_t *list = json_array();
    int r = 0;
    for (size_t i = 0; i < now->n_gpus; i++)
        r |= json_array_append_new(
            list, json_field_of_reading(reading_from(column, &now->gpus[i]), column->is_integer));
    return r | json_object_set_new(object, column->key, list);
}

static json_t *process_memory_json(const struct node_gpu *gpu)
{
    json_t *list = json_array();
    int r = 0;
    for (size_t i = 0; i < gpu->n_processes; i++)
        r |= json_array_append_new(
            list, json_field_of_reading(gpu->processes[i].memory_bytes, true));
    if (r == 0)
        return list;
    json_decref(list);
    return NULL;
}

static int add_gpus(json_t *object, const struct node_report *base, const struct node_report *now)
{
    json_t *replaced = json_array(), *memory = json_array();
    bool is_memory_changed = false;
    int r = 0;
    for (size_t i = 0; i < now->n_gpus; i++) {
        bool is_same = is_same_gpu(&base->gpus[i], &now->gpus[i]);
        bool is_memory = is_same && !is_same_memory(&base->gpus[i], &now->gpus[i]);
        if (!is_same)
            r |= json_array_append_new(replaced, node_gpu_json(&now->gpus[i]));
        r |= json_array_append_new(
            memory, is_memory ? process_memory_json(&now->gpus[i]) : json_null());
        is_memory_changed |= is_memory;
    }
    if (json_array_size(replaced) > 0)
        r |= json_object_set(object, "gpus", replaced);
    if (is_memory_changed)
        r |= json_object_set(object, "process_memory", memory);
    json_decref(replaced);
    json_decref(memory);
    return r;
}

int node_changes_encode(const struct node_report *base, const struct node_report *now,
    char **ret_text, size_t *ret_size)
{
    *ret_text = NULL;
    if (!is_of_same_gpus(base, now) || base->suspends != now->suspends)
        return CHANGES_UNFIT;
    json_t *object = json_pack("{s:i, s:I, s:I, s:I}", "v", REPORT_VERSION, "since",
        (json_int_t)base->sequence, "sequence", (json_int_t)now->sequence, "time_us",
        (json_int_t)now->time_us);
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
        r |= add_column(object, &columns[i], base, now);
    r |= add_gpus(object, base, now);
    if (!is_same_crashes(base, now))
        r |= json_object_set_new(object, "crashes", node_crashes_json(now));
    if (!is_same_jobs(base, now))
        r |= json_object_set_new(object, "jobs", node_jobs_json(now));
    if (r == 0)
        return node_json_write(object, ret_text, ret_size);
    json_decref(object);
    return -ENOMEM;
}

/* ---- decoding ---- */

struct next_report {
    const struct node_report *base;
    struct node_report *report; /* a copy of base, once it fits */
};

/* As json_field_list, of one length. */
static int read_list(const json_t *object, const char *key, size_t count, struct fault *fault,
    const json_t **ret_list)
{
    int r = json_field_list(object, key, count, fault, ret_list);
    if (r == 0 && *ret_list && json_array_size(*ret_list) != count)
        r = fault_set(fault, EINVAL, "%s: not a list of %zu", key, count);
    return r;
}

static int read_column(const json_t *object, const struct column *column, struct fault *fault,
    struct node_report *report)
{
    const json_t *list;
    int r = read_list(object, column->key, report->n_gpus, fault, &list);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        r = json_field_reading_value(json_array_get(list, i), column->key, column->max, fault,
            reading_in(column, &report->gpus[i]));
    return r;
}

static int read_memory_of(const json_t *list, struct fault *fault, struct node_gpu *gpu)
{
    int r = 0;
    if (json_is_null(list))
        return 0;
    if (!json_is_array(list) || json_array_size(list) != gpu->n_processes)
        return fault_set(fault, EINVAL, "process_memory: not a list of the %zu processes of GPU %d",
            gpu->n_processes, gpu->index);
    for (size_t i = 0; r == 0 && i < gpu->n_processes; i++)
        r = json_field_reading_value(json_array_get(list, i), "process_memory", BYTES_MAX, fault,
            &gpu->processes[i].memory_bytes);
    return r;
}

static int read_process_memory(
    const json_t *object, struct fault *fault, struct node_report *report)
{
    const json_t *list;
    int r = read_list(object, "process_memory", report->n_gpus, fault, &list);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        r = read_memory_of(json_array_get(list, i), fault, &report->gpus[i]);
    return r;
}

static struct node_gpu *find_gpu(const struct node_report *report, int index)
{
    for (size_t i = 0; i < report->n_gpus; i++)
        if (report->gpus[i].index == index)
            return &report->gpus[i];
    return NULL;
}

static int replace_gpu(const json_t *object, struct fault *fault, struct node_report *report)
{
    struct node_gpu gpu = {0}, *known = NULL;
    int r = node_gpu_read(object, fault, &gpu);
    if (r == 0 && !(known = find_gpu(report, gpu.index)))
        r = fault_set(fault, EINVAL, "gpus: there was no GPU %d", gpu.index);
    if (r == 0)
        node_gpu_replace(known, &gpu);
    else
        free(gpu.processes);
    return r;
}

static int replace_gpus(const json_t *object, struct fault *fault, struct node_report *report)
{
    const json_t *list;
    int r = json_field_list(object, "gpus", report->n_gpus, fault, &list);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        r = replace_gpu(json_array_get(list, i), fault, report);
    return r;
}

static int replace_crashes(const json_t *object, struct fault *fault, struct node_report *report)
{
    if (!json_object_get(object, "crashes"))
        return 0;
    free(report->crashes);
    report->crashes = NULL;
    report->n_crashes = 0;
    return node_crashes_read(object, fault, report);
}

static int replace_jobs(const json_t *object, struct fault *fault, struct node_report *report)
{
    if (!json_object_get(object, "jobs"))
        return 0;
    free(report->jobs);
    report->jobs = NULL;
    report->n_jobs = 0;
    return node_jobs_read(object, fault, report);
}

/* Finds out whether the changes fit the report that the reader has, and copies that. */
static int begin_changes(const json_t *object, struct fault *fault, struct next_report *next)
{
    int64_t since;
    int r = json_field_integer(object, "since", 0, INT64_MAX, fault, &since);
    if (r == 0 && !*next->base->node)
        r = fault_set(fault, EINVAL, "changes without a report before them");
    if (r < 0)
        return r;
    if (since != next->base->sequence) {
        fault_set(fault, EINVAL, "changes since another report than the last one of node %s",
            next->base->node);
        return CHANGES_UNFIT;
    }
    return node_report_copy(next->base, next->report) < 0
               ? fault_set(fault, ENOMEM, "out of memory")
               : 0;
}

static int read_changes(const json_t *object, struct fault *fault, struct next_report *next)
{
    struct node_report *report = next->report;
    int r = begin_changes(object, fault, next);
    if (r == 0)
        r = json_field_integer(object, "sequence", 0, INT64_MAX, fault, &report->sequence);
    if (r == 0)
        r = json_field_integer(object, "time_us", 0, INT64_MAX, fault, &report->time_us);
    if (r == 0)
        r = replace_gpus(object, fault, report);
    for (size_t i = 0; i < ARRAY_SIZE(columns) && r == 0; i++)
        r = read_column(object, &columns[i], fault, report);
    if (r == 0)
        r = read_process_memory(object, fault, report);
    if (r == 0)
        r = replace_crashes(object, fault, report);
    return r == 0 ? replace_jobs(object, fault, report) : r;
}

static int read_next(const json_t *object, struct fault *fault, void *ret_value)
{
    struct next_report *next = ret_value;
    return json_object_get(object, "since") ? read_changes(object, fault, next)
                                            : node_report_read(object, fault, next->report);
}

int node_changes_decode(const struct node_report *base, const char *text, size_t size,
    struct fault *fault, struct node_report *ret_report)
{
    static const struct json_format format = {REPORT_SIZE_MAX, REPORT_VERSION, read_next};
    struct next_report next = {base, ret_report};
    *ret_report = (struct node_report){0};
    return json_field_decode(&format, text, size, fault, &next);
}
