/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `colloc simulate` says about measured mixes: the part of the shared time that they cover,
 * and how long measuring the others takes. Those that crashed are counted apart: measuring them
 * again would not help. Of the missing ones it names the longest.
 */
#include "cli/simulating_mixes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* What scripts/measure-mixes takes for each: trainings of 10 s from their start to the first step
 * at most, and a window of 20 s. */
#define MEASURE_S 30

static int check_one_kind(const struct cluster *cluster, struct fault *fault, const char **ret_kind)
{
    *ret_kind = cluster->gpus[0]->name;
    for (int i = 1; i < cluster->n_gpus; i++)
        if (strcmp(cluster->gpus[i]->name, *ret_kind) != 0)
            return fault_set(fault, EINVAL,
                "mixes are of one kind of GPU, but %.60s and %.60s are simulated", *ret_kind,
                cluster->gpus[i]->name);
    return 0;
}

int simulating_mixes_read(struct simulating_mixes *mixes, const char *path,
    struct simulation *simulation, struct fault *fault)
{
    int r = check_one_kind(simulation->cluster, fault, &mixes->gpu);
    if (r == 0 && path)
        r = mixes_read(path, fault, &mixes->mixes);
    if (r == 0 && path)
        r = mixes_check_gpus(&mixes->mixes, simulation->cluster, fault);
    simulation->mixes = &mixes->mixes;
    simulation->mix_use = &mixes->use;
    return r;
}

void simulating_mixes_fini(struct simulating_mixes *mixes)
{
    mixes_fini(&mixes->mixes);
    mix_use_fini(&mixes->use);
}

struct summary {
    double measured; /* the part of the time in which GPUs were shared; 1: of none */
    int missing, crashed;
    const struct missing_mix *longest; /* of the missing ones; NULL: none */
};

static struct summary sum_up_use(const struct mix_use *use)
{
    double shared_s = use->measured_s + use->modelled_s;
    struct summary summary = {.measured = shared_s > 0 ? use->measured_s / shared_s : 1};
    for (size_t i = 0; i < use->n; i++) {
        const struct missing_mix *mix = &use->missing[i];
        summary.crashed += mix->crashed;
        summary.missing += !mix->crashed;
        if (!mix->crashed && (!summary.longest || mix->simulated_s > summary.longest->simulated_s))
            summary.longest = mix;
    }
    return summary;
}

static const char *sharing_of(const struct missing_mix *mix)
{
    return mix->mps ? "mps" : "streams";
}

void simulating_mixes_print(const struct simulating_mixes *mixes)
{
    char takes[32];
    struct summary summary = sum_up_use(&mixes->use);
    printf("Mixes         measured for %.1f %% of the time in which GPUs were shared",
        100 * summary.measured);
    if (summary.missing)
        printf("; %d are missing, which takes about %s to measure", summary.missing,
            format_elapsed((int64_t)summary.missing * MEASURE_S * SECOND_US, takes, sizeof takes));
    if (summary.crashed)
        printf("; %d crashed when they were measured", summary.crashed);
    printf("\n");
    if (summary.longest)
        printf(
            "              the longest that is missing is %s (%s); --mixes-missing=FILE lists all\n",
            summary.longest->trainings, sharing_of(summary.longest));
}

json_t *simulating_mixes_json(const struct simulating_mixes *mixes)
{
    struct summary summary = sum_up_use(&mixes->use);
    json_t *longest = summary.longest
                          ? json_pack("{s:s, s:s}", "trainings", summary.longest->trainings,
                                "sharing", sharing_of(summary.longest))
                          : NULL;
    return json_pack("{s:f, s:i, s:i, s:i, s:o*}", "measured", summary.measured, "missing",
        summary.missing, "crashed", summary.crashed, "measuring_s", summary.missing * MEASURE_S,
        "longest_missing", longest);
}
