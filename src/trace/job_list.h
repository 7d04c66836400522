/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs with the figures that every log of a cluster has, lists of them, and the reasons for which
 * jobs are left out of a trace. */
#ifndef COLLOC_TRACE_JOB_LIST_H
#define COLLOC_TRACE_JOB_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

/* Figures beyond these are mistakes of a log (chosen: far above any cluster and any job). */
enum { JOB_GPUS_MAX = 100000 };
#define JOB_LENGTH_MAX_US (INT64_C(1000000000) * 1000000)

struct log_job {
    int64_t submit_us; /* since 1970, or since the log begins */
    int64_t length_us; /* how long it ran; above 0 */
    int gpus;          /* above 0 */
    int user;          /* in the list's `users`; INTERN_EMPTY: not known */
    float part;        /* of each GPU that it requested, below 1; 0: whole GPUs */
    bool is_mig;       /* the part is of instances of MIG */
    bool is_shards;    /* the part is of shards, which colloc gives by memory */
};

struct job_list {
    struct log_job *jobs;
    size_t n, capacity;
    struct intern users;
};

/* Returns the GPUs that the job keeps busy, as it requested them: 0.5 for half of one. */
static inline double job_gpus_requested(const struct log_job *job)
{
    return job->gpus * (job->part > 0 ? (double)job->part : 1);
}

/* Adds a copy of the job at the end. Returns 0 or -ENOMEM. */
int job_list_add(struct job_list *list, const struct log_job *job);

/* Sorts by time of submission; jobs of the same time stay in order. Returns 0 or -ENOMEM. */
int job_list_sort(struct job_list *list);
void job_list_fini(struct job_list *list);

/* Why jobs of a log are not in the trace. */
enum left_out {
    LEFT_OUT_NOT_UNDERSTOOD,
    LEFT_OUT_UNFINISHED,
    LEFT_OUT_NEVER_RAN,
    LEFT_OUT_NO_GPU,
    LEFT_OUT_OUTSIDE_WINDOW,
    LEFT_OUT_TOO_LARGE,
    LEFT_OUT_NOT_SAMPLED,
    LEFT_OUT_BEYOND_LIMIT,
    LEFT_OUT_REASONS
};

/* Returns the reason as text that follows a number of jobs: "had not ended". */
const char *left_out_text(enum left_out reason);

/* The number of jobs in a log, and of those left out for each reason. */
struct job_counts {
    int64_t read;
    int64_t left_out[LEFT_OUT_REASONS];
};

#endif
