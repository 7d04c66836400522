/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs of a log make the trace. */
#ifndef COLLOC_TRACE_SELECT_H
#define COLLOC_TRACE_SELECT_H

#include <stdbool.h>

#include "trace/job.h"

struct selection {
    int64_t from_us;      /* jobs submitted from then on ... */
    bool from_is_date;    /* ... which is a date; otherwise so long after the first submission */
    int64_t window_us;    /* ... for so long; 0: to the end */
    int gpus_max;         /* that need at most so many; 0: any number */
    double sample;        /* each with this probability; 1: all */
    int64_t jobs_max;     /* the first so many of these; 0: all */
    double arrival_scale; /* the times between submissions become so many times as long */
    uint64_t seed;
};

/*
 * Leaves the selected jobs in `list`, in order, with times from the first of them on; counts the
 * others. 0 or -ENOMEM.
 */
int jobs_select(struct job_list *list, const struct selection *selection, struct tally *tally);

#endif
