/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws synthetic jobs with the published figures of a cluster. Published figures of a cluster are
 * a median length over all jobs and a mean length for each size. synth_fit finds the log-normal
 * distributions that have them: for a given shape (sigma), bisection finds each size's median from
 * its mean; an outer bisection finds the sigma at which half of all jobs are below the published
 * median. The wider lengths are spread, the more jobs are short for the same mean, so both searches
 * are of a rising function.
 *
 * Jobs are then drawn one by one: the size by its share, the length from its distribution, the
 * arrival by rejection from a rate that swings over the day.
 */
#include "trace/synth.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "trace/seeded_random.h"

#define DAY_S 86400.0

/* The rate of arrivals over the day: its swing around the mean, and when it is lowest. Assumed: no
 * source has figures for these clusters. */
#define SWING         0.5
#define QUIETEST_HOUR 4

/* Halvings of a range, more than the digits of a double. */
enum { BISECTIONS = 60 };

/*
 * helios: SenseTime's Venus cluster (Hu et al., "Characterization and Prediction of Deep Learning
 * Workloads in Large-Scale GPU Datacenters", SC 2021): 52.5 % of the jobs take one GPU, 22.6 %
 * eight, 10.3 % more, here sixteen; the other 14.6 % are two and four in equal parts. Half take
 * less than ten minutes, the mean is 6,652 s, the longest 50 days. One-GPU jobs take 4.7 % of
 * the GPU time, those with eight or more 85.7 %, from which the means follow, which are taken to be
 * the same for two and four, and for eight and sixteen: of 41,424 GPU-seconds a job, 4.7 % / 0.525
 * jobs; 9.6 % / (0.073 x 2 + 0.073 x 4); 85.7 % / (0.226 x 8 + 0.103 x 16).
 *
 * philly: Microsoft's Philly. The same paper's table 2 has a mean of 28,329 s, and a longest job of
 * 60 days; 70 % with one GPU, 10 % with two, 15 % with four and 5 % with eight are what Gavel's
 * generator draws for Philly (Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies
 * for Deep Learning Workloads", OSDI 2020). Half under ten minutes, and one mean for all sizes, are
 * assumed.
 */
static const struct synth_profile profiles[] = {
    {"helios", 600, 50 * DAY_S,
        {{1, 0.525, 3708}, {2, 0.073, 9079}, {4, 0.073, 9079}, {8, 0.226, 10272},
            {16, 0.103, 10272}}},
    {"philly", 600, 60 * DAY_S,
        {{1, 0.70, 28329}, {2, 0.10, 28329}, {4, 0.15, 28329}, {8, 0.05, 28329}}},
};

const struct synth_profile *synth_profile_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(profiles); i++)
        if (strcmp(profiles[i].name, name) == 0)
            return &profiles[i];
    return NULL;
}

double synth_share(const struct synth_profile *profile, int gpus_max)
{
    double share = 0;
    for (const struct synth_size *size = profile->sizes; size->gpus; size++)
        share += gpus_max == 0 || size->gpus <= gpus_max ? size->share : 0;
    return share;
}

/* ---- lengths ---- */

static double normal_below(double z)
{
    return 0.5 * erfc(-z / M_SQRT2);
}

/* The mean of a lognormal number that is at most `longest`. */
static double cut_mean(double median, double sigma, double longest)
{
    double z = log(longest / median) / sigma;
    return median * exp(sigma * sigma / 2) * normal_below(z - sigma) + longest * normal_below(-z);
}

static double median_for(double mean, double sigma, double longest)
{
    double low = log(mean) - 30, high = log(longest);
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2;
        if (cut_mean(exp(middle), sigma, longest) < mean)
            low = middle;
        else
            high = middle;
    }
    return exp(low);
}

static double share_below_median(const struct synth_profile *profile, struct synth_lengths *lengths)
{
    double below = 0;
    for (int i = 0; profile->sizes[i].gpus; i++) {
        lengths->median_s[i] = median_for(
            profile->sizes[i].mean_s, lengths->sigma, profile->longest_s);
        below += profile->sizes[i].share *
                 normal_below(log(profile->median_s / lengths->median_s[i]) / lengths->sigma);
    }
    return below;
}

void synth_fit(const struct synth_profile *profile, struct synth_lengths *ret_lengths)
{
    double low = 0.1, high = 6; /* a wider spread with the same mean makes more jobs short */
    for (int i = 0; i < BISECTIONS; i++) {
        ret_lengths->sigma = (low + high) / 2;
        if (share_below_median(profile, ret_lengths) < 0.5)
            low = ret_lengths->sigma;
        else
            high = ret_lengths->sigma;
    }
}

/* ---- jobs ---- */

static int draw_size(const struct synth_request *request, struct seeded_random *random)
{
    const struct synth_size *sizes = request->profile->sizes;
    double left = seeded_random_fraction(random) * synth_share(request->profile, request->gpus_max);
    int last = 0;
    for (int i = 0; sizes[i].gpus; i++) {
        if (request->gpus_max && sizes[i].gpus > request->gpus_max)
            continue;
        last = i;
        if ((left -= sizes[i].share) < 0)
            break;
    }
    return last;
}

static double draw_arrival_s(double days, struct seeded_random *random)
{
    for (;;) {
        double at = seeded_random_fraction(random) * days;
        double rate = 1 - SWING * cos(2 * M_PI * (at - QUIETEST_HOUR / 24.0));
        if (seeded_random_fraction(random) * (1 + SWING) < rate)
            return at * DAY_S;
    }
}

int synth_make(const struct synth_request *request, struct job_list *list)
{
    struct seeded_random random = {request->seed};
    struct synth_lengths lengths;
    synth_fit(request->profile, &lengths);
    for (int64_t i = 0; i < request->jobs; i++) {
        int size = draw_size(request, &random);
        double length_s = lengths.median_s[size] *
                          exp(lengths.sigma * seeded_random_normal(&random));
        length_s = fmin(fmax(1, length_s), request->profile->longest_s);
        struct log_job job = {
            .submit_us = llround(draw_arrival_s(request->days, &random)) * SECOND_US,
            .length_us = llround(length_s) * SECOND_US,
            .gpus = request->profile->sizes[size].gpus,
        };
        if (job_list_add(list, &job) < 0)
            return -ENOMEM;
    }
    return job_list_sort(list);
}
