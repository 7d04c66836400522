/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of formats, and what all formats share: opening the file, and counting the jobs that
 * are kept, left out or not understood. A format's reader calls one function for each job of the
 * log: cluster_log_add for one that is complete, cluster_log_leave_out or
 * cluster_log_not_understood for the others.
 */
#include "trace/cluster_log.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"

const struct cluster_log_format *cluster_log_find_format(const char *name)
{
    static const struct cluster_log_format *const formats[] = {&cluster_log_philly,
        &cluster_log_sacct, &cluster_log_swf, &cluster_log_helios, &cluster_log_alibaba};
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

static bool line_has(struct span line, const char *word)
{
    return memmem(line.at, line.size, word, strlen(word));
}

const struct cluster_log_format *cluster_log_recognise(struct span head)
{
    struct span line;
    head = span_trim(head);
    if (!span_next_line(&head, &line))
        return NULL;
    if (span_starts(line, ";"))
        return &cluster_log_swf;
    if (span_starts(line, "["))
        return &cluster_log_philly;
    if (line_has(line, "JobID") && (line_has(line, "Submit") || line_has(line, "State")))
        return &cluster_log_sacct; /* where columns are missing, its reader says which */
    if (line_has(line, "submit_time") && line_has(line, "gpu_num"))
        return &cluster_log_helios;
    return line_has(line, "job_name") && line_has(line, "inst_num") ? &cluster_log_alibaba : NULL;
}

const struct cluster_log_format *cluster_log_recognise_file(const char *path)
{
    char head[4096];
    struct stat status;
    bool is_kept = strcmp(path, "-") != 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode);
    FILE *file = is_kept ? fopen(path, "re") : NULL;
    size_t size = file ? fread(head, 1, sizeof head, file) : 0;
    if (file)
        fclose(file);
    return cluster_log_recognise((struct span){head, size});
}

int cluster_log_read(const struct cluster_log_format *format, const char *path,
    struct cluster_log *log, struct fault *fault)
{
    if (strcmp(path, "-") == 0)
        return format->read(stdin, "standard input", log, fault);
    FILE *file = fopen(path, "re");
    if (!file)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    int r = format->read(file, path, log, fault);
    fclose(file);
    return r;
}

void cluster_log_fini(struct cluster_log *log)
{
    job_list_fini(&log->jobs);
}

void cluster_log_leave_out(struct cluster_log *log, enum left_out reason)
{
    log->counts.read++;
    log->counts.left_out[reason]++;
}

void cluster_log_not_understood(struct cluster_log *log, const struct fault *fault)
{
    if (log->counts.left_out[LEFT_OUT_NOT_UNDERSTOOD] == 0)
        log->first_mistake = *fault;
    cluster_log_leave_out(log, LEFT_OUT_NOT_UNDERSTOOD);
}

int cluster_log_set_user(
    struct cluster_log *log, const char *name, struct log_job *job, struct fault *fault)
{
    job->user = intern_text(&log->jobs.users, name ? name : "");
    return job->user < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
}

int cluster_log_add(
    struct cluster_log *log, const struct log_job *job, const char *where, struct fault *fault)
{
    struct fault mistake;
    if (job->length_us == 0) {
        cluster_log_leave_out(log, LEFT_OUT_NEVER_RAN);
    } else if (job->gpus == 0) {
        cluster_log_leave_out(log, LEFT_OUT_NO_GPU);
    } else if (job->length_us < 0 || job->length_us > JOB_LENGTH_MAX_US || job->gpus < 0 ||
               job->gpus > JOB_GPUS_MAX) {
        fault_set(&mistake, EINVAL, "%s: a job of %d GPUs and %lld s cannot be", where, job->gpus,
            (long long)(job->length_us / 1000000));
        cluster_log_not_understood(log, &mistake);
    } else {
        log->counts.read++;
        if (job_list_add(&log->jobs, job) < 0)
            return fault_set(fault, ENOMEM, "out of memory after %zu jobs", log->jobs.n);
    }
    return 0;
}
