/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alibaba's cluster-trace-gpu-v2020 (https://github.com/alibaba/clusterdata,
 * cluster-trace-gpu-v2020/README.md). Its tables have no line of names, which are in separate
 * .header files; both forms are read. pai_task_table.csv has the tasks of each job, as "worker" and
 * "ps"; pai_job_table.csv has the time of submission and the user of each job:
 *
 *     job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type
 *     j7,ps,1.0,Terminated,5000.0,6000.0,600.0,29.0,,MISC
 *     j7,worker,2.0,Terminated,5010.0,6000.0,400.0,29.0,50.0,V100
 *
 * `plan_gpu` is what each of inst_num instances requested, in per cent of a GPU: job j7 requested
 * two halves, so one GPU. A job is that of its tasks with GPUs: from the first start to the last
 * end, on as many GPUs as its requests add up to, rounded up; `part` is what it requested of each.
 *
 * The tasks of a job may be anywhere in the table, so the jobs are collected first, in a hash table
 * by the hash of their names. Names that share a hash of 64 bits would be taken for one job: among
 * a million of jobs that happens once in 37 million traces.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "trace/cluster_log.h"
#include "trace/log_table.h"

enum { JOB, INSTANCES, STATUS, START, END, PLAN_GPU, USER, PAI_COLUMNS };
enum { FREE = -1, SLOTS_FIRST = 1024 };
#define TIME_MAX_S 7e9 /* as in a log with dates: 222 years */

static const char task_names[] = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,"
                                 "plan_mem,plan_gpu,gpu_type",
                  job_names[] = "job_name,inst_id,user,status,start_time,end_time";

/* A job, as far as its rows have been read. */
struct pai_job {
    uint64_t name_hash;
    int64_t line;          /* of its first row */
    double submit_s;       /* NAN: not known */
    double start_s, end_s; /* of its tasks with GPUs; NAN: none is known */
    double gpus;           /* requested, parts included */
    int user;
    bool unfinished, invalid; /* a task had not ended; a row cannot be understood */
};

struct pai {
    struct columns columns;
    int column[PAI_COLUMNS];
    struct pai_job *jobs;
    size_t n, capacity;
    int *slots; /* by hash: numbers of jobs; FREE */
    size_t n_slots;
    struct fault mistake; /* of the current row */
};

/* ---- jobs by name ---- */

static int *find_slot(const struct pai *pai, uint64_t hash)
{
    size_t i = hash & (pai->n_slots - 1);
    while (pai->slots[i] != FREE && pai->jobs[pai->slots[i]].name_hash != hash)
        i = (i + 1) & (pai->n_slots - 1);
    return &pai->slots[i];
}

/* Keeps the slots at most half full. */
static int grow_slots(struct pai *pai)
{
    size_t n = pai->n_slots ? 2 * pai->n_slots : SLOTS_FIRST;
    int *slots = malloc(n * sizeof *slots);
    if (!slots)
        return -ENOMEM;
    memset(slots, 0xff, n * sizeof *slots);
    free(pai->slots);
    pai->slots = slots;
    pai->n_slots = n;
    for (size_t i = 0; i < pai->n; i++)
        *find_slot(pai, pai->jobs[i].name_hash) = (int)i;
    return 0;
}

/* Returns the job of this name, a new one if there is none; NULL: out of memory. */
static struct pai_job *job_of(struct pai *pai, const char *name)
{
    uint64_t hash = hash_text(HASH_START, name);
    if (2 * (pai->n + 1) > pai->n_slots && grow_slots(pai) < 0)
        return NULL;
    int *slot = find_slot(pai, hash);
    if (*slot == FREE) {
        const struct pai_job job = {.name_hash = hash,
            .line = pai->columns.number,
            .submit_s = NAN,
            .start_s = NAN,
            .end_s = NAN};
        if (pai->n == INT32_MAX || ARRAY_APPEND(pai->jobs, pai->n, pai->capacity, job) < 0)
            return NULL;
        *slot = (int)pai->n - 1;
    }
    return &pai->jobs[*slot];
}

/* ---- the tables ---- */

static int find_columns(struct pai *pai, unsigned needed, struct fault *fault)
{
    static const char *const names[PAI_COLUMNS][2] = {
        [JOB] = {"job_name"},
        [INSTANCES] = {"inst_num"},
        [STATUS] = {"status"},
        [START] = {"start_time"},
        [END] = {"end_time"},
        [PLAN_GPU] = {"plan_gpu"},
        [USER] = {"user"},
    };
    for (int i = 0; i < PAI_COLUMNS; i++) {
        pai->column[i] = columns_find(&pai->columns, names[i]);
        if (pai->column[i] < 0 && (needed & (1U << i)))
            return columns_wrong(&pai->columns, fault,
                "the first line names no %s: the table must have the columns of %s, or no such line",
                names[i][0],
                needed & (1U << PLAN_GPU) ? "pai_task_table.header" : "pai_job_table.header");
    }
    return 0;
}

/* Returns 1 with a time; 0: it is not known, which the trace also writes as 0; -EINVAL. */
static int read_time(struct pai *pai, int column, double *ret_s)
{
    int r = columns_number(&pai->columns, pai->column[column], 0, TIME_MAX_S, &pai->mistake, ret_s);
    return r == 1 && *ret_s == 0 ? 0 : r;
}

static bool has_ended(const struct pai *pai)
{
    const char *status = columns_get(&pai->columns, pai->column[STATUS]);
    return !status || (strcmp(status, "Running") != 0 && strcmp(status, "Waiting") != 0);
}

/* Adds the current row, a task, to its job. Returns 0, or -EINVAL with pai->mistake. */
static int add_task(struct pai *pai, struct pai_job *job)
{
    double gpus = 0, instances = 1, start_s, end_s;
    int r = columns_number(
        &pai->columns, pai->column[PLAN_GPU], 0, 100.0 * JOB_GPUS_MAX, &pai->mistake, &gpus);
    if (r >= 0)
        r = columns_number(
            &pai->columns, pai->column[INSTANCES], 0, JOB_GPUS_MAX, &pai->mistake, &instances);
    if (r < 0)
        return r;
    gpus *= instances / 100;
    if (gpus == 0)
        return 0;
    job->gpus += gpus;
    int start = read_time(pai, START, &start_s), end = read_time(pai, END, &end_s);
    if (start < 0 || end < 0)
        return -EINVAL;
    if (start && end && end_s < start_s)
        return columns_wrong(&pai->columns, &pai->mistake, "end_time is before start_time");
    job->unfinished |= !has_ended(pai) || (start && !end);
    if (start && end) { /* else the task never started */
        job->start_s = fmin(job->start_s, start_s);
        job->end_s = fmax(job->end_s, end_s);
    }
    return 0;
}

static int read_task(void *context, struct cluster_log *log, struct fault *fault)
{
    struct pai *pai = context;
    const char *name = columns_get(&pai->columns, pai->column[JOB]);
    if (!name) {
        columns_wrong(&pai->columns, &pai->mistake, "the task has no job_name");
        cluster_log_not_understood(log, &pai->mistake);
        return 0;
    }
    struct pai_job *job = job_of(pai, name);
    if (!job)
        return fault_set(fault, ENOMEM, "out of memory after %zu jobs", pai->n);
    if (add_task(pai, job) == 0 || job->invalid)
        return 0;
    cluster_log_not_understood(log, &pai->mistake); /* counts its job */
    job->invalid = true;
    return 0;
}

/* Adds the time of submission and the user of a job that is known from its tasks. */
static int read_submission(void *context, struct cluster_log *log, struct fault *fault)
{
    struct pai *pai = context;
    const char *name = columns_get(&pai->columns, pai->column[JOB]);
    double submit_s;
    struct log_job user = {0};
    int *slot = name && pai->n ? find_slot(pai, hash_text(HASH_START, name)) : NULL;
    if (!slot || *slot == FREE)
        return 0;
    int r = cluster_log_set_user(log, columns_get(&pai->columns, pai->column[USER]), &user, fault);
    pai->jobs[*slot].user = user.user;
    if (r == 0 && read_time(pai, START, &submit_s) == 1)
        pai->jobs[*slot].submit_s = submit_s;
    return r;
}

static int read_job_table(struct pai *pai, struct cluster_log *log, struct fault *fault)
{
    columns_close(&pai->columns);
    int64_t not_understood = log->counts.left_out[LEFT_OUT_NOT_UNDERSTOOD], read = log->counts.read;
    int r = columns_open_named(&pai->columns, log->job_table, job_names, fault);
    if (r == 0)
        r = find_columns(pai, 1U << JOB | 1U << START | 1U << USER, fault);
    if (r == 0)
        r = log_table_read(&pai->columns, read_submission, pai, log, fault);
    log->counts.left_out[LEFT_OUT_NOT_UNDERSTOOD] = not_understood; /* its rows are no jobs */
    log->counts.read = read;
    return r;
}

/* ---- jobs ---- */

static int add_job(
    const struct pai_job *pai_job, const char *name, struct cluster_log *log, struct fault *fault)
{
    char where[320];
    double gpus = ceil(pai_job->gpus - 1e-9), part = gpus > 0 ? pai_job->gpus / gpus : 0;
    bool ran = pai_job->end_s > pai_job->start_s;
    double submit_s = isnan(pai_job->submit_s) ? pai_job->start_s : pai_job->submit_s;
    if (pai_job->unfinished && gpus > 0) {
        cluster_log_leave_out(log, LEFT_OUT_UNFINISHED);
        return 0;
    }
    struct log_job job = {
        .submit_us = ran ? llround(submit_s * (double)SECOND_US) : 0,
        .length_us = ran ? llround((pai_job->end_s - pai_job->start_s) * (double)SECOND_US) : 0,
        .gpus = gpus > JOB_GPUS_MAX ? JOB_GPUS_MAX + 1 : (int)gpus,
        .user = pai_job->user,
        .part = part < 1 - 1e-6 ? (float)part : 0,
    };
    if (job.gpus == 0) {
        cluster_log_leave_out(log, LEFT_OUT_NO_GPU);
        return 0;
    }
    snprintf(where, sizeof where, "%.280s:%lld", name, (long long)pai_job->line);
    return cluster_log_add(log, &job, where, fault);
}

static int add_jobs(
    const struct pai *pai, const char *name, struct cluster_log *log, struct fault *fault)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < pai->n; i++)
        if (!pai->jobs[i].invalid)
            r = add_job(&pai->jobs[i], name, log, fault);
    return r;
}

static int read_alibaba(FILE *file, const char *name, struct cluster_log *log, struct fault *fault)
{
    struct pai pai = {0};
    int r = columns_open_file_named(&pai.columns, file, name, task_names, fault), broken;
    if (r == 0)
        r = find_columns(&pai, 1U << JOB | 1U << START | 1U << END | 1U << PLAN_GPU, fault);
    if (r == 0)
        r = log_table_read(&pai.columns, read_task, &pai, log, fault);
    broken = r == -EBADMSG ? r : 0;
    if (r == 0 && log->job_table) {
        r = read_job_table(&pai, log, fault);
        broken = r == -EBADMSG ? r : 0;
    }
    if (r == 0 || broken) {
        struct fault of_adding = {0};
        r = add_jobs(&pai, name, log, &of_adding);
        if (r < 0 && fault)
            *fault = of_adding;
    }
    columns_close(&pai.columns);
    free(pai.jobs);
    free(pai.slots);
    return r < 0 ? r : broken;
}

const struct cluster_log_format cluster_log_alibaba = {"alibaba", read_alibaba};
