/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one training step: allocated piece by piece, freed all at once or down to a mark:
 *
 *     size_t mark = scratch->used;
 *     float *d = scratch_alloc(scratch, n);
 *     ...
 *     scratch->used = mark;
 */
#ifndef COLLOC_MEMNET_SCRATCH_H
#define COLLOC_MEMNET_SCRATCH_H

#include <stddef.h>

#include "memnet/blas.h"

struct scratch {
    const struct blas *blas; /* of the layers that use this memory */
    float *memory;
    size_t used, size; /* in floats */
};

/* Frees all and reserves memory for `size` floats. Returns 0 or -ENOMEM. */
int scratch_reserve(struct scratch *scratch, size_t size);
void scratch_fini(struct scratch *scratch);

/* Returns uninitialised memory. Aborts when more is allocated than was reserved, which is a bug of
 * the caller. */
float *scratch_alloc(struct scratch *scratch, size_t n);

#endif
