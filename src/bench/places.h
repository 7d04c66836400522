/* SPDX-License-Identifier: Apache-2.0 */
/* Where the trainings of a group go: GPUs, or MIG instances of them. */
#ifndef COLLOC_BENCH_PLACES_H
#define COLLOC_BENCH_PLACES_H

#include "bench/experiment.h"
#include "gpu/gpu.h"

enum { PLACES_LACKING = 1, PLACE_SIZE = 8 * 96 };

/*
 * Fills ret_places[group->n_tasks] with what CUDA_VISIBLE_DEVICES takes: UUIDs, comma-separated.
 * Under MIG every task has an instance of its own.
 *
 * Returns 0, or PLACES_LACKING with the reason in `why`.
 */
int places_find(const struct gpu_set *set, const struct bench_group *group,
    char (*ret_places)[PLACE_SIZE], char *why, size_t size);

#endif
