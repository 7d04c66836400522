/* SPDX-License-Identifier: Apache-2.0 */
/* What the samples of the GPU say of a group of a bench: means, and the peak of its memory. */
#ifndef COLLOC_BENCH_GPU_USAGE_H
#define COLLOC_BENCH_GPU_USAGE_H

#include "bench/measured_group.h"

/* The columns of a sample, as `colloc record` names them in gpu_activities. */
enum { GPU_POWER = 4, GPU_MEMORY = 5, GPU_ACTIVITIES = 8 };
extern const char *const gpu_activities[GPU_ACTIVITIES];

struct gpu_usage {
    double sums[GPU_ACTIVITIES];
    int counts[GPU_ACTIVITIES];
    struct reading peak_mib;
};

/*
 * Reads the samples of a group. Means are over measured_group_span, the peak is of the whole time.
 * Of a file that cannot be read to its end the lines before count; without a file all is unknown.
 */
struct gpu_usage gpu_usage_read(const char *path, const struct measured_group *group);

/* Returns the mean of a column. */
struct reading gpu_usage_mean(const struct gpu_usage *usage, int activity);

#endif
