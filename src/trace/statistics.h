/* SPDX-License-Identifier: Apache-2.0 */
/* What a list of jobs is like. */
#ifndef COLLOC_TRACE_STATISTICS_H
#define COLLOC_TRACE_STATISTICS_H

#include "trace/job.h"

enum { LENGTH_QUANTILES = 7 };
extern const double length_quantiles[LENGTH_QUANTILES]; /* 0.1 to 1 */

struct job_statistics {
    size_t jobs;
    double span_s; /* from the first submission to the last */
    double mean_length_s, quantile_s[LENGTH_QUANTILES];
    double under_ten_minutes; /* of the jobs */
    double gpu_s;             /* GPUs times length, of all */
    struct size_share {
        int gpus;
        size_t jobs;
        double gpu_s;
    } * sizes; /* by GPUs */
    size_t n_sizes;
};

/* Of jobs in order of time, one at least. 0 or -ENOMEM. Ended by job_statistics_fini either way. */
int job_statistics_make(const struct job_list *list, struct job_statistics *ret_statistics);
void job_statistics_fini(struct job_statistics *statistics);

#endif
