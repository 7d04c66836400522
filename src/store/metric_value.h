/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as they are handed over and read: the samples of a series, and values over a time. */
#ifndef COLLOC_STORE_METRIC_VALUE_H
#define COLLOC_STORE_METRIC_VALUE_H

#include <stddef.h>
#include <stdint.h>

enum { METRIC_VALUES_MAX = 16, METRIC_GPU_SIZE = 96, METRIC_LABEL_SIZE = 36 };

/* Identifies a series: the values of a GPU (task 0), of a task on one GPU, or of a task's processes
 * (`gpu` is ""). */
struct metric_key {
    uint64_t task;
    char gpu[METRIC_GPU_SIZE]; /* a UUID */
};

/* Samples of one series, oldest first. */
struct metric_samples {
    struct metric_key key;
    const char *label;    /* how people name the task, such as 14_3; NULL: by its id */
    int n_values;         /* of each sample, at most METRIC_VALUES_MAX */
    size_t count;         /* samples */
    const int64_t *at_ms; /* wall clock; all within METRIC_BATCH_MS */
    const float *values;  /* count * n_values */
};

enum { METRIC_BATCH_MS = 60000 };

/* One value in one bucket. NaN: unknown. */
struct metric_value {
    float min, mean, max;
};

#endif
