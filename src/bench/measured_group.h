/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a bench measured of a group: its times, and what they say of its speed. Pure.
 *
 * The first epoch of a training is warm-up, the second is timed, and later ones only keep the GPU
 * busy for the other tasks.
 */
#ifndef COLLOC_BENCH_MEASURED_GROUP_H
#define COLLOC_BENCH_MEASURED_GROUP_H

#include <stddef.h>

#include "base/reading.h"

#define MEASURED_MAX 1e15 /* chosen: no figure of a training is larger */

/* An epoch of a training. Seconds are of the wall clock. */
struct epoch {
    char *group;
    int repeat, task, number;
    double took_s, from_s, to_s, samples;
};

struct epochs {
    struct epoch *item;
    size_t n, capacity;
};

struct measured_group {
    const char *name, *mix, *sharing;
    int number, repeat, n_tasks, failed;
    double began_s, total_s, energy_j;
    struct epochs epochs; /* of its tasks */
};

struct interval {
    double from_s, to_s;
};

/* Returns the time from the first start of a task to the last end. */
struct interval measured_group_whole(const struct measured_group *group);

/*
 * Returns the time that the means of the GPU are of: in which all tasks train; if there is none,
 * that of the timed epochs; if no task reports epochs (a user's own script), the whole time. Empty
 * if it is not known when the tasks trained: they report no epochs, and none ended well.
 */
struct interval measured_group_span(const struct measured_group *group);

/* Returns the mean length of the timed epochs. */
struct reading measured_group_epoch_s(const struct measured_group *group);

/*
 * Returns the throughput of all tasks together: that of the timed epochs, if all others were busy
 * during the whole timed epoch of each task; else the mean over the time in which all train.
 */
struct reading measured_group_samples_per_s(const struct measured_group *group);

#endif
