/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of clusters. A format is one file that exports one struct, and a line in cluster_log.c. Logs
 * are read from front to end; memory is needed only for the jobs that are kept (32 bytes each).
 */
#ifndef COLLOC_TRACE_CLUSTER_LOG_H
#define COLLOC_TRACE_CLUSTER_LOG_H

#include <stdio.h>

#include "base/fault.h"
#include "base/text.h"
#include "trace/job_list.h"

struct cluster_log {
    int processors_per_gpu;     /* set by the caller, for formats that count processors */
    const char *job_table;      /* a second file, for formats that have one; or NULL: borrowed */
    struct job_list jobs;       /* kept */
    struct job_counts counts;   /* of all */
    struct fault first_mistake; /* of the first job that was not understood */
};

struct cluster_log_format {
    const char *name; /* the name of the format: a value of --from */
    /*
     * Adds the jobs of the file.
     *
     * `name`: of the file, for faults.
     *
     * Returns 0; -EBADMSG if the log breaks off in the line in the fault, with the jobs before it
     * added; or another -errno with a fault.
     */
    int (*read)(FILE *file, const char *name, struct cluster_log *log, struct fault *fault);
};

extern const struct cluster_log_format cluster_log_philly, cluster_log_sacct, cluster_log_swf,
    cluster_log_helios, cluster_log_alibaba;

/* Returns the format of the name, or NULL. */
const struct cluster_log_format *cluster_log_find_format(const char *name);

/*
 * Recognises the format of a log by its first line; for the table of Alibaba's tasks this needs the
 * line of names, which the published files lack.
 *
 * head: the beginning of the log; may end anywhere
 *
 * Returns the format, or NULL.
 */
const struct cluster_log_format *cluster_log_recognise(struct span head);

/* The same of a file. Returns NULL also for one that cannot be read, and for "-" and pipes: what
 * is read of these is gone. */
const struct cluster_log_format *cluster_log_recognise_file(const char *path);

/*
 * Reads a log.
 *
 * path: "-" is standard input.
 * log:  zero but for what the caller sets; cluster_log_fini must follow in each case.
 *
 * Returns what the format's `read` returns, or -errno of opening the file.
 */
int cluster_log_read(const struct cluster_log_format *format, const char *path,
    struct cluster_log *log, struct fault *fault);
void cluster_log_fini(struct cluster_log *log);

/* ---- for formats ---- */

/*
 * Adds a job, or leaves it out: if it never ran, has no GPU, or has impossible figures.
 *
 * where: file and line, for the fault about impossible figures.
 *
 * Returns 0 or -ENOMEM.
 */
int cluster_log_add(
    struct cluster_log *log, const struct log_job *job, const char *where, struct fault *fault);

/* Sets the job's user. `name`: as the log has it; NULL or "": not known. Returns 0, or -ENOMEM with
 * a fault. */
int cluster_log_set_user(
    struct cluster_log *log, const char *name, struct log_job *job, struct fault *fault);

/* Counts a job that is left out. */
void cluster_log_leave_out(struct cluster_log *log, enum left_out reason);

/* Counts a job that is not understood; keeps the first such fault. */
void cluster_log_not_understood(struct cluster_log *log, const struct fault *fault);

#endif
