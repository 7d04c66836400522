/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs as those of a published cluster: number of GPUs by stated shares; length lognormal with one
 * shape for all and a mean for each number of GPUs, cut at a longest; arrivals independent, half as
 * many at four in the morning, half as many again at four in the afternoon (assumed).
 */
#ifndef COLLOC_TRACE_SYNTH_H
#define COLLOC_TRACE_SYNTH_H

#include "trace/job.h"

enum { SYNTH_SIZES_MAX = 8 };

/* What is published of a cluster. */
struct synth_profile {
    const char *name;
    double median_s, longest_s; /* of all jobs */
    struct synth_size {
        int gpus;
        double share, mean_s; /* of the jobs; of their lengths */
    } sizes[SYNTH_SIZES_MAX]; /* ended by gpus 0 */
};

/* NULL when there is none. */
const struct synth_profile *synth_profile_find(const char *name);

struct synth_request {
    const struct synth_profile *profile;
    int64_t jobs;
    double days;
    int gpus_max; /* jobs that need more are not made, the others' shares rise; 0: any number */
    uint64_t seed;
};

/* The lognormal lengths that have the profile's median and means. */
struct synth_lengths {
    double sigma;
    double median_s[SYNTH_SIZES_MAX]; /* by size */
};
void synth_fit(const struct synth_profile *profile, struct synth_lengths *ret_lengths);

/* The share of the profile's jobs that need at most so many GPUs. */
double synth_share(const struct synth_profile *profile, int gpus_max);

/* Adds the jobs, in order of time. 0 or -ENOMEM. synth_share must be above 0. */
int synth_make(const struct synth_request *request, struct job_list *list);

#endif
