/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of values over time, and how they are packed into bytes. Pure. */
#ifndef COLLOC_STORE_METRIC_BUCKET_H
#define COLLOC_STORE_METRIC_BUCKET_H

#include <stdbool.h>

#include "store/metric_value.h"

/* One value's sums over a bucket; start with {0}. */
struct bucket_sum {
    float min, max;
    double sum;
    uint32_t count; /* known values; 0: unknown */
};

/* Adds a value, or the figures of a finer bucket; an unknown one adds nothing. */
void bucket_add(struct bucket_sum *sum, struct metric_value value);

/* Returns minimum, mean and maximum of the added values; NAN without any. */
struct metric_value bucket_value(const struct bucket_sum *sum);

/* A growing byte buffer. Start with {0}; the caller frees `data`. */
struct metric_bytes {
    unsigned char *data;
    size_t size, capacity;
};

/* Packs the samples of a row, whose start is not after the first of them. Returns 0 or -ENOMEM. */
int metric_pack_samples(
    const struct metric_samples *samples, int64_t start_ms, struct metric_bytes *bytes);

/* Packs one bucket of a block; `index` is its position there. Returns 0 or -ENOMEM. */
int metric_pack_bucket(
    struct metric_bytes *bytes, uint32_t index, const struct metric_value *values, int n_values);

/* Walks packed bytes. */
struct metric_reader {
    const unsigned char *at, *end;
    int64_t start_ms, bucket_ms;
    int n_values; /* of each sample or bucket; 0: the bytes are not what was packed */
};

/*
 * Begins with the first sample or bucket.
 *
 * data:      `size` bytes, borrowed
 * start_ms:  of the row
 * bucket_ms: 0: samples
 */
struct metric_reader metric_reader_begin(
    const void *data, size_t size, int64_t start_ms, int64_t bucket_ms);

/* Reads the next sample or bucket; values that it lacks are unknown. Returns false at the end, and
 * where the bytes are not what was packed. */
bool metric_unpack(struct metric_reader *reader, int64_t *ret_at_ms,
    struct metric_value ret_values[METRIC_VALUES_MAX]);

#endif
