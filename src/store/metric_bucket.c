/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums up values of a metric over a time. A bucket has the minimum, mean and maximum of its values.
 * Buckets are merged into longer ones: each counts the same in the mean, so that the mean of an
 * hour is that of its minutes.
 *
 * Packed are the number of values, and then samples, with their time (milliseconds behind the row's
 * start) and one float for each value, or buckets, with their position in the block and three
 * floats for each value:
 *
 *     row     | u32 n_values | sample, sample, ... or bucket, bucket, ...
 *     sample  | u32 offset_ms | f32 value 0 | f32 value 1 | ...
 *     bucket  | u32 index     | f32 min 0, mean 0, max 0  | f32 min 1, ... | ...
 *
 * Numbers are in the machine's byte order: the file does not leave the machine.
 */
#include "store/metric_bucket.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/array.h"

void bucket_add(struct bucket_sum *sum, struct metric_value value)
{
    if (isnan(value.mean))
        return;
    sum->min = sum->count == 0 || value.min < sum->min ? value.min : sum->min;
    sum->max = sum->count == 0 || value.max > sum->max ? value.max : sum->max;
    sum->sum += value.mean;
    sum->count++;
}

struct metric_value bucket_value(const struct bucket_sum *sum)
{
    if (sum->count == 0)
        return (struct metric_value){NAN, NAN, NAN};
    return (struct metric_value){sum->min, (float)(sum->sum / sum->count), sum->max};
}

static int append_bytes(struct metric_bytes *bytes, const void *data, size_t size)
{
    if (ARRAY_RESERVE(bytes->data, bytes->capacity, bytes->size + size) < 0)
        return -ENOMEM;
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return 0;
}

static int append_count(struct metric_bytes *bytes, int n_values)
{
    uint32_t n = (uint32_t)n_values;
    return bytes->size ? 0 : append_bytes(bytes, &n, sizeof n);
}

int metric_pack_samples(
    const struct metric_samples *samples, int64_t start_ms, struct metric_bytes *bytes)
{
    size_t n = (size_t)samples->n_values;
    int r = append_count(bytes, samples->n_values);
    for (size_t i = 0; i < samples->count && r == 0; i++) {
        uint32_t offset_ms = (uint32_t)(samples->at_ms[i] - start_ms);
        r = append_bytes(bytes, &offset_ms, sizeof offset_ms);
        if (r == 0)
            r = append_bytes(bytes, samples->values + i * n, n * sizeof(float));
    }
    return r;
}

int metric_pack_bucket(
    struct metric_bytes *bytes, uint32_t index, const struct metric_value *values, int n_values)
{
    int r = append_count(bytes, n_values);
    if (r == 0)
        r = append_bytes(bytes, &index, sizeof index);
    return r == 0 ? append_bytes(bytes, values, (size_t)n_values * sizeof *values) : r;
}

struct metric_reader metric_reader_begin(
    const void *data, size_t size, int64_t start_ms, int64_t bucket_ms)
{
    struct metric_reader reader = {
        data, (const unsigned char *)data + size, start_ms, bucket_ms, 0};
    uint32_t n;
    if (size < sizeof n)
        return reader;
    memcpy(&n, data, sizeof n);
    reader.at += sizeof n;
    reader.n_values = n <= METRIC_VALUES_MAX ? (int)n : 0;
    return reader;
}

bool metric_unpack(struct metric_reader *reader, int64_t *ret_at_ms,
    struct metric_value ret_values[METRIC_VALUES_MAX])
{
    size_t n = (size_t)reader->n_values,
           one = reader->bucket_ms ? sizeof *ret_values : sizeof(float);
    uint32_t position;
    if (n == 0 || (size_t)(reader->end - reader->at) < sizeof position + n * one)
        return false;
    memcpy(&position, reader->at, sizeof position);
    const unsigned char *from = reader->at + sizeof position;
    *ret_at_ms = reader->start_ms + position * (reader->bucket_ms ? reader->bucket_ms : 1);
    for (size_t i = 0; i < METRIC_VALUES_MAX; i++) {
        float value = NAN;
        if (i < n && !reader->bucket_ms)
            memcpy(&value, from + i * one, one);
        ret_values[i] = (struct metric_value){value, value, value};
    }
    if (reader->bucket_ms)
        memcpy(ret_values, from, n * one);
    reader->at = from + n * one;
    return true;
}
