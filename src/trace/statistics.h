/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that describe a list of jobs. */
#ifndef COLLOC_TRACE_STATISTICS_H
#define COLLOC_TRACE_STATISTICS_H

#include "trace/job_list.h"

enum { LENGTH_QUANTILES = 7 };
extern const double length_quantiles[LENGTH_QUANTILES]; /* 0.1 to 1 */

struct job_statistics {
    size_t jobs;
    double span_s; /* from the first submission to the last */
    double mean_length_s, quantile_s[LENGTH_QUANTILES];
    double under_ten_minutes; /* the share of the jobs that are shorter */
    double gpu_s;             /* GPUs times length, summed over the jobs */
    struct size_share {
        int gpus;
        size_t jobs;
        double gpu_s;
    } * sizes; /* one for each number of GPUs, in order */
    size_t n_sizes;
};

/*
 * list: in order of time, one job at least.
 *
 * Returns 0 or -ENOMEM; job_statistics_fini must follow in both cases.
 */
int job_statistics_make(const struct job_list *list, struct job_statistics *ret_statistics);
void job_statistics_fini(struct job_statistics *statistics);

#endif
