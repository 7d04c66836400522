/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the actions of `colloc trace`: options as numbers, input and output files, the
 * catalogue.
 *
 * A log of months may be incomplete at its end. That is an error, which says how many jobs can be
 * read; with --keep-partial these are used. A job that cannot be parsed is counted and left out.
 */
#include "cli/trace_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "cli/print.h"
#include "sim/cluster.h"
#include "trace/mapping.h"
#include "trace/own_trace.h"

const struct option_value *trace_value(const struct trace_run *run, int option)
{
    return &run->invocation->values[option];
}

bool trace_wants_json(const struct trace_run *run)
{
    return run->invocation->common[COMMON_JSON].number;
}

int trace_number(const struct trace_run *run, int option, double min, double max, double otherwise,
    struct fault *fault, double *ret_value)
{
    const char *text = trace_value(run, option)->text;
    *ret_value = otherwise;
    if (!text || parse_double(text, min, max, ret_value) == 0)
        return 0;
    return fault_set(fault, EINVAL, "--%s=%.60s: invalid number: give one from %g to %g",
        trace_options[option].name, text, min, max);
}

/* A number of GPUs, or a cluster as `colloc simulate` takes it: 4, or 4xA100-40GB. */
int trace_gpus(const struct trace_run *run, struct fault *fault, int *ret_gpus)
{
    const char *text = trace_value(run, TRACE_GPUS)->text;
    int64_t count;
    struct cluster cluster;
    *ret_gpus = 0;
    if (!text)
        return 0;
    int r = parse_int64(text, 1, CLUSTER_GPUS_MAX, &count);
    if (r == 0)
        *ret_gpus = (int)count;
    if (r == -ERANGE)
        return fault_set(fault, EINVAL, "--gpus=%.60s: invalid number of GPUs: give 1 to %d", text,
            CLUSTER_GPUS_MAX);
    if (r != -EINVAL)
        return r;
    CLEANUP_FREE struct gpu_kinds *kinds = calloc(1, sizeof *kinds);
    if (!kinds)
        return fault_set(fault, ENOMEM, "out of memory");
    r = gpu_kinds_init(kinds, fault);
    if (r == 0) {
        r = cluster_parse(kinds, text, fault, &cluster);
        *ret_gpus = cluster.n_gpus;
        cluster_fini(&cluster);
    }
    return fault_prefix(r < 0 ? fault : NULL, r, "--gpus=%.60s", text);
}

int trace_catalogue(struct trace_run *run, struct fault *fault)
{
    static const struct catalogue_settings settings = {
        "none", NAN}; /* unknown activity stays unknown */
    return catalogue_read(trace_value(run, TRACE_TASKS)->text, &settings, fault, &run->catalogue);
}

/* An incomplete log is an error unless --keep-partial is given. */
static int break_off(const struct trace_run *run, struct fault *fault)
{
    struct fault where = *fault;
    if (trace_value(run, TRACE_KEEP_PARTIAL)->number) {
        print_error("%s: the file is incomplete", where.text);
        return 0;
    }
    if (run->log.jobs.n)
        fault_set(fault, EBADMSG, "%.400s: use the %zu jobs before that with --keep-partial",
            where.text, run->log.jobs.n);
    return -EBADMSG;
}

const struct cluster_log_format *trace_format(const struct trace_run *run)
{
    const struct option_value *from = trace_value(run, TRACE_FROM);
    if (from->set)
        return cluster_log_find_format(from->text);
    const struct cluster_log_format *format = cluster_log_recognise_file(run->name);
    if (format)
        print_error("%s: read as --from=%s, which its first line shows", run->name, format->name);
    return format;
}

int trace_read_log(
    struct trace_run *run, const struct cluster_log_format *format, struct fault *fault)
{
    const struct option_value *processors = trace_value(run, TRACE_PROCESSORS);
    const char *from = format->name;
    run->log.job_table = trace_value(run, TRACE_JOB_TABLE)->text;
    if (run->log.job_table && strcmp(from, "alibaba") != 0)
        return fault_set(fault, EINVAL, "--job-table: a log of %s has no second table", from);
    run->log.processors_per_gpu = processors->set ? (int)processors->number : 1;
    int r = cluster_log_read(format, run->name, &run->log, fault);
    if (r == -EBADMSG)
        r = break_off(run, fault);
    if (r == 0 && run->log.counts.left_out[LEFT_OUT_NOT_UNDERSTOOD])
        print_error("%s (the first invalid job)", run->log.first_mistake.text);
    return r;
}

/* Finds the task of the catalogue for each job. `ret_tasks`: for the caller to free. */
static int map_jobs(
    const struct trace_run *run, struct fault *fault, const struct sim_task ***ret_tasks)
{
    const struct job_list *jobs = &run->log.jobs;
    bool own = trace_value(run, TRACE_TASKS_OUT)->set;
    struct mapping mapping;
    size_t other = 0;
    *ret_tasks = calloc(jobs->n, sizeof **ret_tasks);
    if (!*ret_tasks ||
        mapping_init(&mapping, &run->catalogue, (uint64_t)trace_value(run, TRACE_SEED)->number) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; i < jobs->n; i++) {
        const struct log_job *job = &jobs->jobs[i];
        const struct sim_task *task = own ? mapping_any(&mapping, job->gpus)
                                          : mapping_nearest(&mapping, job);
        (*ret_tasks)[i] = task;
        other += task->gpus != job->gpus;
    }
    mapping_fini(&mapping);
    if (other && !own)
        print_error("%zu jobs became tasks with another number of GPUs, because the "
                    "catalogue has none with theirs",
            other);
    return 0;
}

#define GPU_BYTES_USUAL (40 * GIB) /* of the GPUs of `colloc simulate`, A100-40GB */

/* Each job gets its task of the catalogue; with --tasks-out it becomes a new task. */
int trace_write(struct trace_run *run, struct fault *fault)
{
    CLEANUP_FREE const struct sim_task **tasks = NULL;
    const char *output = trace_value(run, TRACE_OUTPUT)->text,
               *tasks_out = trace_value(run, TRACE_TASKS_OUT)->text;
    const struct option_value *gpu_memory = trace_value(run, TRACE_GPU_MEMORY);
    int64_t gpu_bytes = gpu_memory->set ? gpu_memory->number : GPU_BYTES_USUAL;
    int r = trace_catalogue(run, fault);
    if (r == 0)
        r = map_jobs(run, fault, &tasks);
    if (r == 0)
        r = own_trace_write(output ? output : "-", &run->log.jobs, tasks, tasks_out != NULL, fault);
    if (r == 0 && tasks_out)
        r = own_tasks_write(tasks_out, &run->log.jobs, tasks, gpu_bytes, fault);
    return r;
}
