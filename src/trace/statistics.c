/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of a list of jobs, from two sorted copies: by length for the quantiles, by GPUs for the
 * sizes. A quantile is the shortest length that the given share of the jobs does not exceed.
 */
#include "trace/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define TEN_MINUTES_US (600 * SECOND_US)

const double length_quantiles[LENGTH_QUANTILES] = {0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1};

static double seconds_of(int64_t us)
{
    return (double)us / (double)SECOND_US;
}

static int by_length(const void *a, const void *b)
{
    const struct log_job *x = a, *y = b;
    return (x->length_us > y->length_us) - (x->length_us < y->length_us);
}

static int by_gpus(const void *a, const void *b)
{
    return ((const struct log_job *)a)->gpus - ((const struct log_job *)b)->gpus;
}

static void measure_lengths(struct log_job *jobs, struct job_statistics *statistics)
{
    size_t n = statistics->jobs, under = 0;
    qsort(jobs, n, sizeof *jobs, by_length);
    for (size_t i = 0; i < n; i++) {
        statistics->mean_length_s += seconds_of(jobs[i].length_us) / (double)n;
        statistics->gpu_s += job_gpus_requested(&jobs[i]) * seconds_of(jobs[i].length_us);
        under += jobs[i].length_us < TEN_MINUTES_US;
    }
    statistics->under_ten_minutes = (double)under / (double)n;
    for (int q = 0; q < LENGTH_QUANTILES; q++) { /* the shortest length that this share of the jobs
                                                  * does not exceed */
        size_t rank = (size_t)ceil(length_quantiles[q] * (double)n);
        statistics->quantile_s[q] = seconds_of(jobs[rank ? rank - 1 : 0].length_us);
    }
}

static int measure_sizes(struct log_job *jobs, struct job_statistics *statistics)
{
    size_t distinct = 1;
    qsort(jobs, statistics->jobs, sizeof *jobs, by_gpus);
    for (size_t i = 1; i < statistics->jobs; i++)
        distinct += jobs[i].gpus != jobs[i - 1].gpus;
    statistics->sizes = calloc(distinct, sizeof *statistics->sizes);
    if (!statistics->sizes)
        return -ENOMEM;
    for (size_t i = 0; i < statistics->jobs; i++) {
        if (i == 0 || jobs[i].gpus != jobs[i - 1].gpus)
            statistics->sizes[statistics->n_sizes++].gpus = jobs[i].gpus;
        struct size_share *size = &statistics->sizes[statistics->n_sizes - 1];
        size->jobs++;
        size->gpu_s += job_gpus_requested(&jobs[i]) * seconds_of(jobs[i].length_us);
    }
    return 0;
}

int job_statistics_make(const struct job_list *list, struct job_statistics *ret_statistics)
{
    *ret_statistics = (struct job_statistics){.jobs = list->n};
    ret_statistics->span_s = seconds_of(
        list->jobs[list->n - 1].submit_us - list->jobs[0].submit_us);
    struct log_job *copy = malloc(list->n * sizeof *copy);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, list->jobs, list->n * sizeof *copy);
    measure_lengths(copy, ret_statistics);
    int r = measure_sizes(copy, ret_statistics);
    free(copy);
    return r;
}

void job_statistics_fini(struct job_statistics *statistics)
{
    free(statistics->sizes);
    *statistics = (struct job_statistics){0};
}
