/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of clusters. A format is one file that exports one struct, and a line in log.c. Logs are
 * read from front to end in constant memory but for the jobs that are kept (24 bytes each).
 */
#ifndef COLLOC_TRACE_LOG_H
#define COLLOC_TRACE_LOG_H

#include <stdio.h>

#include "base/fault.h"
#include "trace/job.h"

struct job_log {
    int processors_per_gpu; /* of formats that count processors; set by the caller */
    struct job_list jobs;
    struct tally tally;
    struct fault first_mistake; /* the first job that was not understood */
};

struct log_format {
    const char *name;
    /* Adds what the file says. 0; -EBADMSG: the log is broken from the line in the fault on, the
     * jobs before it are whole; or another -errno with a fault. */
    int (*read)(FILE *file, const char *name, struct job_log *log, struct fault *fault);
};

extern const struct log_format log_format_philly, log_format_sacct, log_format_swf;

/* NULL when there is none. */
const struct log_format *log_format_find(const char *name);

/* Reads the file ("-" is standard input) as the format's `read` says. The caller ends the log with
 * job_log_fini. */
int job_log_read(
    const struct log_format *format, const char *path, struct job_log *log, struct fault *fault);
void job_log_fini(struct job_log *log);

/* For formats: counts a job that is left out. */
void job_log_leave_out(struct job_log *log, enum left_out reason);

/* For formats: the same for one that is not understood; keeps the first such fault. */
void job_log_not_understood(struct job_log *log, const struct fault *fault);

/* For formats: a job, left out if it never ran or has no GPU, a mistake if its figures are absurd.
 * 0 or -ENOMEM. */
int job_log_add(
    struct job_log *log, const struct log_job *job, const char *where, struct fault *fault);

#endif
