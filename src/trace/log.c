/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/log.h"

#include <errno.h>
#include <string.h>

const struct log_format *log_format_find(const char *name)
{
    static const struct log_format *const formats[] = {
        &log_format_philly, &log_format_sacct, &log_format_swf};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

int job_log_read(
    const struct log_format *format, const char *path, struct job_log *log, struct fault *fault)
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

void job_log_fini(struct job_log *log)
{
    job_list_fini(&log->jobs);
}

void job_log_leave_out(struct job_log *log, enum left_out reason)
{
    log->tally.read++;
    log->tally.left_out[reason]++;
}

void job_log_not_understood(struct job_log *log, const struct fault *fault)
{
    if (log->tally.left_out[LEFT_OUT_NOT_UNDERSTOOD] == 0)
        log->first_mistake = *fault;
    job_log_leave_out(log, LEFT_OUT_NOT_UNDERSTOOD);
}

int job_log_add(
    struct job_log *log, const struct log_job *job, const char *where, struct fault *fault)
{
    struct fault mistake;
    if (job->length_us == 0) {
        job_log_leave_out(log, LEFT_OUT_NEVER_RAN);
    } else if (job->gpus == 0) {
        job_log_leave_out(log, LEFT_OUT_NO_GPU);
    } else if (job->length_us < 0 || job->length_us > JOB_LENGTH_MAX_US || job->gpus < 0 ||
               job->gpus > JOB_GPUS_MAX) {
        fault_set(&mistake, EINVAL, "%s: a job of %d GPUs and %lld s cannot be", where, job->gpus,
            (long long)(job->length_us / 1000000));
        job_log_not_understood(log, &mistake);
    } else {
        log->tally.read++;
        if (job_list_add(&log->jobs, job) < 0)
            return fault_set(fault, ENOMEM, "out of memory after %zu jobs", log->jobs.n);
    }
    return 0;
}
