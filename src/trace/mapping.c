/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the task of the catalogue that is most like a job. Tasks are sorted by GPUs, then by
 * length; those with as many GPUs as the job form a range, in which the nearest lengths are found
 * by binary search. Lengths are compared by ratio: a task of 5 minutes is as near to a job of 10 as
 * one of 20.
 *
 * Example: a job of 100 s, and tasks of 80, 96, 103 and 130 s. The nearest is 103 s (ratio 1.03).
 * Tasks up to a ratio of 1.03 x 1.05 are as good: 96 s (1.04) and 103 s, of which chance picks one.
 */
#include "trace/mapping.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"

/* A range of the tasks. */
struct range {
    size_t begin, end;
};

static int by_gpus_and_time(const void *a, const void *b)
{
    const struct sim_task *x = *(const struct sim_task *const *)a,
                          *y = *(const struct sim_task *const *)b;
    if (x->gpus != y->gpus)
        return x->gpus < y->gpus ? -1 : 1;
    return (x->solo_s > y->solo_s) - (x->solo_s < y->solo_s);
}

int mapping_init(struct mapping *mapping, const struct catalogue *catalogue, uint64_t seed)
{
    *mapping = (struct mapping){.n = (size_t)catalogue->n, .random = {seed}};
    mapping->tasks = malloc(mapping->n * sizeof *mapping->tasks);
    if (!mapping->tasks)
        return -ENOMEM;
    for (size_t i = 0; i < mapping->n; i++)
        mapping->tasks[i] = &catalogue->tasks[i];
    qsort(mapping->tasks, mapping->n, sizeof *mapping->tasks, by_gpus_and_time);
    return 0;
}

void mapping_fini(struct mapping *mapping)
{
    free(mapping->tasks);
    *mapping = (struct mapping){0};
}

/* The first task of the range that is not before (gpus, solo_s). */
static size_t lower_bound(
    const struct mapping *mapping, struct range range, int gpus, double solo_s)
{
    const struct sim_task key = {.gpus = gpus, .solo_s = solo_s}, *at = &key;
    while (range.begin < range.end) {
        size_t middle = range.begin + (range.end - range.begin) / 2;
        if (by_gpus_and_time(&mapping->tasks[middle], &at) < 0)
            range.begin = middle + 1;
        else
            range.end = middle;
    }
    return range.begin;
}

static struct range of_gpus(const struct mapping *mapping, int gpus)
{
    struct range all = {0, mapping->n};
    size_t more = lower_bound(mapping, all, gpus, -1);
    int nearest = more < mapping->n ? mapping->tasks[more]->gpus : 0;
    int fewer = more > 0 ? mapping->tasks[more - 1]->gpus : 0;
    if (nearest == 0 ||
        (nearest != gpus && fewer && (double)gpus / fewer <= (double)nearest / gpus))
        nearest = fewer;
    return (struct range){
        lower_bound(mapping, all, nearest, -1), lower_bound(mapping, all, nearest + 1, -1)};
}

static double ratio_of(double a, double b)
{
    return a > b ? a / b : b / a;
}

static double length_of(const struct mapping *mapping, size_t i)
{
    return fmax(1e-3, mapping->tasks[i]->solo_s);
}

const struct sim_task *mapping_nearest(struct mapping *mapping, const struct log_job *job)
{
    struct range range = of_gpus(mapping, job->gpus);
    int gpus = mapping->tasks[range.begin]->gpus;
    double length_s = fmax(1e-3, (double)job->length_us / (double)SECOND_US), near = INFINITY;
    size_t at = lower_bound(mapping, range, gpus, length_s);
    if (at < range.end)
        near = ratio_of(length_of(mapping, at), length_s);
    if (at > range.begin)
        near = fmin(near, ratio_of(length_of(mapping, at - 1), length_s));
    near *= MAPPING_TIE;
    size_t begin = lower_bound(mapping, range, gpus, length_s / near);
    size_t end = lower_bound(mapping, range, gpus, nextafter(length_s * near, INFINITY));
    if (begin == end) /* the length of the nearest task is 0 */
        return mapping->tasks[at - 1];
    return mapping->tasks[begin + seeded_random_below(&mapping->random, end - begin)];
}

const struct sim_task *mapping_any(struct mapping *mapping, int gpus)
{
    struct range range = of_gpus(mapping, gpus);
    return mapping
        ->tasks[range.begin + seeded_random_below(&mapping->random, range.end - range.begin)];
}
