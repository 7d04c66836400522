/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the jobs of a log that make the trace. */
#ifndef COLLOC_TRACE_SELECT_H
#define COLLOC_TRACE_SELECT_H

#include <stdbool.h>

#include "trace/job_list.h"

struct selection {
    int64_t from_us;      /* jobs submitted before are left out */
    bool from_is_date;    /* from_us is a date; else it counts from the first submission */
    int64_t window_us;    /* jobs submitted later than this after from_us are left out; 0: none */
    int gpus_max;         /* jobs with more GPUs are left out; 0: none */
    double sample;        /* the probability of each of these to be kept; 1: all are */
    int64_t jobs_max;     /* of these, only the first are kept; 0: all */
    double arrival_scale; /* factor on the times between submissions */
    uint64_t seed;        /* of the sample */
};

/*
 * Removes the jobs that are not selected from the list and sorts the others. Their times then count
 * from the first of them.
 *
 * counts: the left-out jobs are added.
 *
 * Returns 0 or -ENOMEM.
 */
int jobs_select(
    struct job_list *list, const struct selection *selection, struct job_counts *counts);

#endif
