/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with one head over a sequence. An encoder spends most of its time here, since the cost
 * grows with the square of the sequence. */
#ifndef COLLOC_GPUMEMNET_GPUMEMNET_ATTENTION_H
#define COLLOC_GPUMEMNET_GPUMEMNET_ATTENTION_H

#include <stddef.h>

#include "estimator/gpumemnet/gpumemnet_lanes.h"

/* The queries, keys and values of a sequence. Each channel is a row of `rows` floats: n values, and
 * finite padding. */
struct attention {
    size_t n, rows; /* rows: n rounded up to whole LANES */
    int width;      /* channels of each, at most GPUMEMNET_WIDTH_MAX */
    const float *q, *k, *v;
    float *scores; /* room for n * LANES */
};

/*
 * Computes softmax(q k / sqrt(width)) v for LANES positions. Sums are in the order of the
 * sequence, so the result is the same on every machine.
 *
 * t: the first position, a multiple of LANES.
 * ret_mixed: `width` rows of LANES.
 */
void attention_take(const struct attention *attention, size_t t, float *ret_mixed);

#endif
