/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `sacct --parsable2` prints (https://slurm.schedmd.com/sacct.html): a line of names, then one
 * of each job and job step. Steps (ids with a dot) are skipped; the components of a heterogeneous
 * job (123+0, 123+1) are one job. GPUs are those of AllocTRES, or where that has none, of ReqTRES.
 * A job may have parts of GPUs: instances of MIG, or shards, as every job whose GPU colloc shares.
 *
 *     gres/gpu:a100=2,gres/gpu=2        two GPUs
 *     gres/gpu:1g.10gb=1,gres/gpu=1     a seventh of one
 *     gres/shard=57                     57 of the 80 shards of one
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/columns.h"
#include "base/text.h"
#include "base/units.h"
#include "trace/civil_time.h"
#include "trace/cluster_log.h"
#include "trace/log_table.h"

enum { ID, SUBMIT, ELAPSED, ELAPSED_RAW, STATE, ALLOCATED, REQUESTED, USER, SACCT_COLUMNS };

struct sacct {
    struct columns columns;
    int column[SACCT_COLUMNS];
    char component_of[64]; /* the heterogeneous job whose component the last kept job is, or "" */
};

static const char *get_field(const struct sacct *sacct, int column)
{
    return columns_get(&sacct->columns, sacct->column[column]);
}

static int find_columns(struct sacct *sacct, struct fault *fault)
{
    static const char *const names[SACCT_COLUMNS][3] = {
        [ID] = {"JobID", "JobIDRaw"},
        [SUBMIT] = {"Submit"},
        [ELAPSED] = {"Elapsed"},
        [ELAPSED_RAW] = {"ElapsedRaw"},
        [STATE] = {"State"},
        [ALLOCATED] = {"AllocTRES", "AllocGRES"},
        [REQUESTED] = {"ReqTRES", "ReqGRES"},
        [USER] = {"User", "UID"},
    };
    for (int i = 0; i < SACCT_COLUMNS; i++)
        sacct->column[i] = columns_find(&sacct->columns, names[i]);
    const int *column = sacct->column;
    if (column[ID] >= 0 && column[SUBMIT] >= 0 &&
        (column[ELAPSED] >= 0 || column[ELAPSED_RAW] >= 0) &&
        (column[ALLOCATED] >= 0 || column[REQUESTED] >= 0))
        return 0;
    return columns_wrong(&sacct->columns, fault,
        "the first line must name JobID, Submit, Elapsed and AllocTRES or ReqTRES: sacct --allusers "
        "--parsable2 --format=JobID,User,Submit,Elapsed,State,AllocTRES,ReqTRES --starttime=...");
}

/* The number after the last '=' or ':' of "gres/gpu=2", "gres/gpu:a100=2", "gpu:2", "gpu:a100:2";
 * 1 if there is none. */
static int number_of(const char *word)
{
    int64_t n = 1;
    const char *mark = strrchr(word, '=') ? strrchr(word, '=') : strrchr(word, ':');
    if (mark)
        parse_int64(mark + 1, 0, JOB_GPUS_MAX, &n);
    return (int)n;
}

enum {
    MIG_SLICES = 7,     /* of an A100, H100 or H200 (NVIDIA's MIG user guide) */
    SHARDS_PER_GPU = 80 /* what `colloc slurm setup` makes; sacct does not say how many there are */
};

/* The resources of a list: `gpus` is the total, `kinds` the sum over the kinds. */
struct gres_counts {
    int64_t gpus, kinds;
    int64_t instances; /* of MIG, among the kinds */
    double whole;      /* what these are of whole GPUs */
    int64_t shards, shard_kinds, gpus_with_shards;
};

/* The compute slices of "gpu:1g.10gb=1" or "gpu:nvidia_a100_1g.10gb=1" (the kind that slurmd's
 * AutoDetect=nvml writes), or 0: it is no instance of MIG. */
static int mig_slices_of(const char *word)
{
    for (const char *at = strchr(word, ':'); at; at = strpbrk(at + 1, "_.")) {
        int slices, memory, end = 0;
        if (sscanf(at + 1, "%1dg.%3dgb%n", &slices, &memory, &end) == 2 && end > 0)
            return slices > 0 && slices <= MIG_SLICES ? slices : 0;
    }
    return 0;
}

/* Is the word "NAME", or does it go on with a kind or a number? */
static bool is_resource(const char *word, const char *name)
{
    size_t size = strlen(name);
    return strncmp(word, name, size) == 0 && (!word[size] || strchr(":=", word[size]));
}

static void count_word(const char *word, struct gres_counts *counts)
{
    int slices = mig_slices_of(word), n = number_of(word);
    bool is_total = word[strcspn(word, ":=")] == '=';
    if (is_resource(word, "gpu") && is_total) {
        counts->gpus = n;
    } else if (is_resource(word, "gpu")) {
        counts->kinds += n;
        counts->instances += slices ? n : 0;
        counts->whole += slices ? (double)n * slices / MIG_SLICES : 0;
    } else if (is_resource(word, "shard") && is_total) {
        counts->shards = n;
    } else if (is_resource(word, "shard")) {
        counts->shard_kinds += n;
        counts->gpus_with_shards++;
    }
}

/* Sets the GPUs of "billing=8,gres/gpu:a100=2,gres/gpu=2": the total if it is listed, else the sum
 * over the kinds; and which part of each the job has. */
static void count_gpus(const char *list, struct log_job *job)
{
    struct gres_counts counts = {0};
    for (const char *at = list ? list : "", *end; *at; at = *end ? end + 1 : end) {
        char copy[64], *word = copy;
        end = at + strcspn(at, ",");
        span_copy((struct span){at, (size_t)(end - at)}, copy, sizeof copy);
        if (strncmp(word, "gres/", 5) == 0 || strncmp(word, "gres:", 5) == 0)
            word += 5;
        count_word(word, &counts);
    }
    int64_t shards = counts.shards ? counts.shards : counts.shard_kinds;
    int64_t gpus = counts.gpus ? counts.gpus : counts.kinds;
    bool has_shards = gpus == 0 && shards > 0;
    double requested = (double)(gpus - counts.instances) + counts.whole;
    if (has_shards) {
        int64_t least = (shards + SHARDS_PER_GPU - 1) / SHARDS_PER_GPU;
        gpus = counts.gpus_with_shards > least ? counts.gpus_with_shards : least;
        requested = (double)shards / SHARDS_PER_GPU;
    }
    bool is_part = gpus > 0 && requested > 0 && requested < (double)gpus;
    job->gpus = gpus <= JOB_GPUS_MAX ? (int)gpus : JOB_GPUS_MAX + 1;
    job->part = is_part ? (float)(requested / (double)gpus) : 0;
    job->is_mig = counts.instances > 0;
    job->is_shards = has_shards;
}

static bool has_ended(const char *state)
{
    static const char *const ends[] = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT",
        "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "REVOKED"};
    size_t size = state ? strcspn(state, " ") : 0; /* "CANCELLED by 1000" */
    if (!state)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (strlen(ends[i]) == size && strncmp(state, ends[i], size) == 0)
            return true;
    return false;
}

/* 0 or -EINVAL. */
static int read_length(const struct sacct *sacct, int64_t *ret_us)
{
    int64_t seconds;
    const char *raw = get_field(sacct, ELAPSED_RAW), *elapsed = get_field(sacct, ELAPSED);
    if (raw) {
        if (parse_int64(raw, 0, JOB_LENGTH_MAX_US / SECOND_US, &seconds) < 0)
            return -EINVAL;
        *ret_us = seconds * SECOND_US;
        return 0;
    }
    return elapsed && strchr(elapsed, ':') && parse_duration(elapsed, ret_us) == 0 ? 0 : -EINVAL;
}

/* Adds the job to the last kept one if both are components of the same job: their GPUs are used
 * together. Returns whether it did. */
static bool joins_last(
    struct sacct *sacct, const char *id, const struct log_job *job, struct job_list *jobs)
{
    const char *plus = strchr(id, '+');
    size_t size = plus ? (size_t)(plus - id) : 0;
    bool same = size && strlen(sacct->component_of) == size &&
                strncmp(sacct->component_of, id, size) == 0;
    snprintf(sacct->component_of, sizeof sacct->component_of, "%.*s", (int)size, id);
    if (!same || !jobs->n)
        return false;
    struct log_job *last = &jobs->jobs[jobs->n - 1];
    if (last->gpus + job->gpus > JOB_GPUS_MAX)
        return false;
    double requested = job_gpus_requested(last) + job_gpus_requested(job);
    last->gpus += job->gpus;
    last->part = requested < last->gpus ? (float)(requested / last->gpus) : 0;
    last->is_mig |= job->is_mig;
    last->is_shards &= job->is_shards;
    last->length_us = job->length_us > last->length_us ? job->length_us : last->length_us;
    return true;
}

static int add_job(
    struct sacct *sacct, const char *id, struct cluster_log *log, struct fault *fault)
{
    struct log_job job = {0};
    struct fault mistake;
    char where[320];
    const char *submit = get_field(sacct, SUBMIT);
    if (!submit || civil_time_parse(submit, &job.submit_us) < 0) {
        columns_wrong(&sacct->columns, &mistake,
            "Submit is \"%.40s\": YYYY-MM-DDTHH:MM:SS is needed", submit ? submit : "");
        cluster_log_not_understood(log, &mistake);
        return 0;
    }
    if (read_length(sacct, &job.length_us) < 0) {
        columns_wrong(
            &sacct->columns, &mistake, "job %.40s has no elapsed time [DAYS-]HH:MM:SS", id);
        cluster_log_not_understood(log, &mistake);
        return 0;
    }
    count_gpus(get_field(sacct, ALLOCATED), &job);
    if (!job.gpus)
        count_gpus(get_field(sacct, REQUESTED), &job);
    if (job.length_us > 0 && joins_last(sacct, id, &job, &log->jobs))
        return 0;
    int r = cluster_log_set_user(log, get_field(sacct, USER), &job, fault);
    size_t before = log->jobs.n;
    if (r < 0)
        return r;
    snprintf(
        where, sizeof where, "%.280s:%lld", sacct->columns.name, (long long)sacct->columns.number);
    r = cluster_log_add(log, &job, where, fault);
    if (log->jobs.n == before)
        sacct->component_of[0] = '\0';
    return r;
}

static int read_row(void *context, struct cluster_log *log, struct fault *fault)
{
    struct sacct *sacct = context;
    struct fault mistake;
    const char *id = get_field(sacct, ID);
    if (id && strncmp(id, "---", 3) == 0)
        return columns_wrong(&sacct->columns, fault,
            "this is sacct's table for reading, which cuts its columns: run sacct again with "
            "--parsable2");
    if (id && strchr(id, '.'))
        return 0; /* a step: 123.batch, 123.extern, 123.0 */
    if (id && has_ended(get_field(sacct, STATE)))
        return add_job(sacct, id, log, fault);
    if (id) {
        cluster_log_leave_out(log, LEFT_OUT_UNFINISHED);
        return 0;
    }
    columns_wrong(&sacct->columns, &mistake, "the job has no id");
    cluster_log_not_understood(log, &mistake);
    return 0;
}

static int read_sacct(FILE *file, const char *name, struct cluster_log *log, struct fault *fault)
{
    struct sacct sacct = {0};
    int r = columns_open_file(&sacct.columns, file, name, fault);
    if (r == 0)
        r = find_columns(&sacct, fault);
    if (r == 0)
        r = log_table_read(&sacct.columns, read_row, &sacct, log, fault);
    columns_close(&sacct.columns);
    return r;
}

const struct cluster_log_format cluster_log_sacct = {"sacct", read_sacct};
