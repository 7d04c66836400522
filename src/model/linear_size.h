/* SPDX-License-Identifier: Apache-2.0 */
/* A size that grows with the batch, as an export has them: bytes, elements or multiply-adds. */
#ifndef COLLOC_MODEL_LINEAR_SIZE_H
#define COLLOC_MODEL_LINEAR_SIZE_H

#include <stdint.h>

/* A fixed part, and a part for each sample of the batch. */
struct linear_size {
    int64_t fixed, per_sample;
};

/* Returns the size at a batch. */
static inline double linear_size_at(struct linear_size size, double batch)
{
    return (double)size.fixed + (double)size.per_sample * batch;
}

#endif
