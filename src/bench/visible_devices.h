/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA_VISIBLE_DEVICES for the trainings of a group: GPUs, or MIG instances. */
#ifndef COLLOC_BENCH_VISIBLE_DEVICES_H
#define COLLOC_BENCH_VISIBLE_DEVICES_H

#include "bench/experiment.h"
#include "gpu/gpu.h"

enum { DEVICES_MISSING = 1, DEVICES_SIZE = 8 * 96 };

/*
 * Chooses the devices of each task. Under MIG each task gets its own instance.
 *
 * ret_devices: for each of group->n_tasks its comma-separated UUIDs
 * why:         `size` bytes for a reason
 *
 * Returns 0, or DEVICES_MISSING with the reason in `why`.
 */
int visible_devices_find(const struct gpu_set *set, const struct bench_group *group,
    char (*ret_devices)[DEVICES_SIZE], char *why, size_t size);

#endif
