/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as JSON, both ways. What the driver does not report is left out, and a member that is
 * left out is not known: 0 always means a measured 0.
 */
#include "nodelink/node_report_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- encoding ---- */

static int add_text(json_t *object, const char *key, const char *text)
{
    return *text ? json_object_set_new(object, key, json_stringn_nocheck(text, strlen(text))) : 0;
}

/* What lacks a part (r < 0) is released. */
static json_t *whole_or_null(json_t *json, int r)
{
    if (r == 0)
        return json;
    json_decref(json);
    return NULL;
}

static json_t *process_json(const struct node_process *process)
{
    json_t *object = json_pack("{s:i}", "pid", (int)process->pid);
    int r = json_field_add_reading(object, "memory", process->memory_bytes, true);
    if (process->job)
        r |= json_object_set_new(object, "job", json_integer(process->job));
    if (process->is_claimed)
        r |= json_object_set_new(object, "claimed_by", json_integer(process->uid));
    return whole_or_null(object, r);
}

json_t *node_gpu_json(const struct node_gpu *gpu)
{
    json_t *object = json_pack("{s:i}", "index", gpu->index), *processes = json_array();
    int r = add_text(object, "uuid", gpu->uuid);
    r |= json_field_add_reading(object, "memory_total", gpu->memory_total_bytes, true);
    r |= json_field_add_reading(object, "memory_used", gpu->memory_used_bytes, true);
    r |= json_field_add_reading(object, "smact", gpu->smact, false);
    r |= json_field_add_reading(object, "power", gpu->power_w, false);
    r |= add_text(object, "trouble", gpu->trouble);
    for (size_t i = 0; i < gpu->n_processes; i++)
        r |= json_array_append_new(processes, process_json(&gpu->processes[i]));
    if (gpu->processes_known)
        r |= json_object_set(object, "processes", processes);
    else if (gpu->external_at_least)
        r |= json_object_set_new(object, "external_at_least", json_integer(gpu->external_at_least));
    json_decref(processes);
    return whole_or_null(object, r);
}

static int append_unless_null(json_t *list, json_t *item)
{
    return item ? json_array_append_new(list, item) : 0;
}

/* Returns NULL when its evidence is no UTF-8: the report then goes without it. */
static json_t *crash_json(const struct node_crash *crash)
{
    return json_pack("{s:I, s:I, s:s}", "job", (json_int_t)crash->job, "restarts",
        (json_int_t)crash->restarts, "evidence", crash->evidence);
}

json_t *node_crashes_json(const struct node_report *report)
{
    json_t *crashes = json_array();
    int r = 0;
    for (size_t i = 0; i < report->n_crashes; i++)
        r |= append_unless_null(crashes, crash_json(&report->crashes[i]));
    return whole_or_null(crashes, r);
}

json_t *node_jobs_json(const struct node_report *report)
{
    json_t *jobs = json_array();
    int r = 0;
    for (size_t i = 0; i < report->n_jobs; i++)
        r |= append_unless_null(jobs, node_job_json(&report->jobs[i]));
    return whole_or_null(jobs, r);
}

static json_t *report_json(const struct node_report *report)
{
    json_t *gpus = json_array();
    int r = 0;
    for (size_t i = 0; i < report->n_gpus; i++)
        r |= json_array_append_new(gpus, node_gpu_json(&report->gpus[i]));
    json_t *object = json_pack("{s:i, s:s, s:s, s:I, s:I, s:o, s:o}", "v", REPORT_VERSION, "node",
        report->node, "boot", report->boot, "sequence", (json_int_t)report->sequence, "time_us",
        (json_int_t)report->time_us, "gpus", gpus, "crashes", node_crashes_json(report));
    if (report->suspends)
        r |= json_object_set_new(object, "suspends", json_true());
    if (report->n_jobs)
        r |= json_object_set_new(object, "jobs", node_jobs_json(report));
    return whole_or_null(object, r);
}

int node_json_write(json_t *object, char **ret_text, size_t *ret_size)
{
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(object);
    *ret_text = text;
    *ret_size = text ? strlen(text) : 0;
    return text ? 0 : -ENOMEM;
}

int node_report_encode(const struct node_report *report, char **ret_text, size_t *ret_size)
{
    *ret_text = NULL;
    return node_report_is_bounded(report) ? node_json_write(report_json(report), ret_text, ret_size)
                                          : -EMSGSIZE;
}

/* ---- decoding ---- */

static int read_process(const json_t *object, struct fault *fault, struct node_process *process)
{
    int64_t pid = 0, job = 0, uid = 0;
    int r = json_field_integer(object, "pid", 1, INT32_MAX, fault, &pid);
    if (r == 0)
        r = json_field_reading(object, "memory", BYTES_MAX, fault, &process->memory_bytes);
    if (r == 0 && json_object_get(object, "job"))
        r = json_field_integer(object, "job", 1, UINT32_MAX, fault, &job);
    process->is_claimed = json_object_get(object, "claimed_by") != NULL;
    if (r == 0 && process->is_claimed)
        r = json_field_integer(object, "claimed_by", 0, UINT32_MAX, fault, &uid);
    process->pid = (pid_t)pid;
    process->job = (uint32_t)job;
    process->uid = (uid_t)uid;
    return r;
}

static int read_external(const json_t *object, struct fault *fault, struct node_gpu *gpu)
{
    int64_t count = 0;
    int r = json_object_get(object, "external_at_least")
                ? json_field_integer(
                      object, "external_at_least", 1, NODE_PROCESSES_MAX, fault, &count)
                : 0;
    gpu->external_at_least = (uint32_t)count;
    return r;
}

static int read_processes(const json_t *object, struct fault *fault, struct node_gpu *gpu)
{
    const json_t *list;
    int r = json_field_list(object, "processes", NODE_PROCESSES_MAX, fault, &list);
    gpu->processes_known = list != NULL;
    if (r == 0 && !list)
        return read_external(object, fault, gpu);
    if (r < 0 || json_array_size(list) == 0)
        return r;
    gpu->processes = calloc(json_array_size(list), sizeof *gpu->processes);
    if (!gpu->processes)
        return fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(list) && r == 0; i++, gpu->n_processes++)
        r = read_process(json_array_get(list, i), fault, &gpu->processes[i]);
    return r;
}

int node_gpu_read(const json_t *object, struct fault *fault, struct node_gpu *gpu)
{
    int64_t index;
    int r = json_field_integer(object, "index", 0, 255, fault, &index);
    gpu->index = (int)index;
    if (r == 0)
        r = json_field_text(object, "uuid", fault, gpu->uuid, sizeof gpu->uuid);
    if (r == 0)
        r = json_field_reading(object, "memory_total", BYTES_MAX, fault, &gpu->memory_total_bytes);
    if (r == 0)
        r = json_field_reading(object, "memory_used", BYTES_MAX, fault, &gpu->memory_used_bytes);
    if (r == 0)
        r = json_field_reading(object, "smact", 1, fault, &gpu->smact);
    if (r == 0)
        r = json_field_reading(object, "power", POWER_MAX, fault, &gpu->power_w);
    if (r == 0)
        r = json_field_text(object, "trouble", fault, gpu->trouble, sizeof gpu->trouble);
    return r == 0 ? read_processes(object, fault, gpu) : r;
}

static int refuse_second_index(const struct node_report *report, struct fault *fault)
{
    for (size_t i = 0; i < report->n_gpus; i++)
        for (size_t k = 0; k < i; k++)
            if (report->gpus[i].index == report->gpus[k].index)
                return fault_set(fault, EINVAL, "two GPUs have index %d", report->gpus[i].index);
    return 0;
}

static int read_gpus(const json_t *object, struct fault *fault, struct node_report *report)
{
    const json_t *list;
    int r = json_field_list(object, "gpus", NODE_GPUS_MAX, fault, &list);
    if (r < 0 || json_array_size(list) == 0)
        return r;
    report->gpus = calloc(json_array_size(list), sizeof *report->gpus);
    if (!report->gpus)
        return fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(list) && r == 0; i++) {
        report->n_gpus++;
        r = node_gpu_read(json_array_get(list, i), fault, &report->gpus[i]);
        if (r < 0)
            fault_prefix(fault, r, "GPU %zu of the list", i);
    }
    return r == 0 ? refuse_second_index(report, fault) : r;
}

int node_crashes_read(const json_t *object, struct fault *fault, struct node_report *report)
{
    const json_t *list;
    int r = json_field_list(object, "crashes", NODE_CRASHES_MAX, fault, &list);
    if (r < 0 || json_array_size(list) == 0)
        return r;
    report->crashes = calloc(json_array_size(list), sizeof *report->crashes);
    if (!report->crashes)
        return fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(list) && r == 0; i++, report->n_crashes++) {
        const json_t *item = json_array_get(list, i);
        struct node_crash *crash = &report->crashes[i];
        int64_t job, restarts = 0;
        r = json_field_integer(item, "job", 1, UINT32_MAX, fault, &job);
        if (r == 0)
            r = json_field_integer(item, "restarts", 0, UINT32_MAX, fault, &restarts);
        if (r == 0)
            r = json_field_text(item, "evidence", fault, crash->evidence, sizeof crash->evidence);
        crash->job = (uint32_t)job;
        crash->restarts = (uint32_t)restarts;
    }
    return r;
}

int node_jobs_read(const json_t *object, struct fault *fault, struct node_report *report)
{
    const json_t *list;
    int r = json_field_list(object, "jobs", NODE_JOBS_MAX, fault, &list);
    if (r < 0 || json_array_size(list) == 0)
        return r;
    report->jobs = calloc(json_array_size(list), sizeof *report->jobs);
    if (!report->jobs)
        return fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(list) && r == 0; i++, report->n_jobs++)
        r = node_job_read(json_array_get(list, i), fault, &report->jobs[i]);
    return r;
}

int node_report_read(const json_t *object, struct fault *fault, void *ret_value)
{
    struct node_report *report = ret_value;
    int r = json_field_text(object, "node", fault, report->node, sizeof report->node);
    if (r == 0 && !node_name_is_valid(report->node))
        r = fault_set(fault, EINVAL, "node: not the name of a node");
    if (r == 0)
        r = json_field_text(object, "boot", fault, report->boot, sizeof report->boot);
    if (r == 0)
        r = json_field_integer(object, "sequence", 0, INT64_MAX, fault, &report->sequence);
    if (r == 0)
        r = json_field_integer(object, "time_us", 0, INT64_MAX, fault, &report->time_us);
    if (r == 0)
        r = read_gpus(object, fault, report);
    if (r == 0)
        r = node_crashes_read(object, fault, report);
    report->suspends = json_is_true(json_object_get(object, "suspends"));
    return r == 0 ? node_jobs_read(object, fault, report) : r;
}

int node_report_decode(
    const char *text, size_t size, struct fault *fault, struct node_report *ret_report)
{
    static const struct json_format format = {REPORT_SIZE_MAX, REPORT_VERSION, node_report_read};
    *ret_report = (struct node_report){0};
    return json_field_decode(&format, text, size, fault, ret_report);
}
