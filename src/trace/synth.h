/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generates jobs like those of a published cluster: the number of GPUs by published shares; the
 * length log-normal, with one shape for all jobs and a mean for each number of GPUs, cut at the
 * longest; arrivals independent of each other, at a rate that is half the mean at four in the
 * morning and one and a half times the mean at four in the afternoon (assumed).
 */
#ifndef COLLOC_TRACE_SYNTH_H
#define COLLOC_TRACE_SYNTH_H

#include "trace/job_list.h"

enum { SYNTH_SIZES_MAX = 8 };

/* The published figures of a cluster. */
struct synth_profile {
    const char *name;
    double median_s, longest_s; /* lengths of all jobs */
    struct synth_size {
        int gpus;
        double share;         /* of the jobs */
        double mean_s;        /* of their lengths */
    } sizes[SYNTH_SIZES_MAX]; /* a size with gpus 0 ends them */
};

/* Returns the profile of the name, or NULL. */
const struct synth_profile *synth_profile_find(const char *name);

struct synth_request {
    const struct synth_profile *profile;
    int64_t jobs;
    double days;
    int gpus_max; /* sizes above it are left out, and the others' shares rise; 0: none is */
    uint64_t seed;
};

/* Log-normal distributions of the lengths. */
struct synth_lengths {
    double sigma;
    double median_s[SYNTH_SIZES_MAX]; /* by size */
};

/* Finds the distributions that have the profile's median and means. */
void synth_fit(const struct synth_profile *profile, struct synth_lengths *ret_lengths);

/* Returns the share of the profile's jobs with at most `gpus_max` GPUs; 0: any number. */
double synth_share(const struct synth_profile *profile, int gpus_max);

/* Adds jobs to the list, in order of time. The profile must have sizes up to gpus_max (synth_share
 * is above 0). Returns 0 or -ENOMEM. */
int synth_make(const struct synth_request *request, struct job_list *list);

#endif
