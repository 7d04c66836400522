/* Where the trainings of a group go: a GPU, or MIG instances of it. */
#ifndef COLLOC_BENCH_PLACES_H
#define COLLOC_BENCH_PLACES_H

#include "bench/experiment.h"
#include "gpu/gpu.h"

enum { PLACES_LACKING = 1 };

/*
 * Fills ret_uuids[group->n_tasks] with what CUDA_VISIBLE_DEVICES takes, borrowed from the set.
 * Under MIG every task has an instance of its own. 0, or PLACES_LACKING with the reason in `why`.
 */
int places_find(const struct gpu_set *set, const struct bench_group *group, const char **ret_uuids,
    char *why, size_t size);

#endif
