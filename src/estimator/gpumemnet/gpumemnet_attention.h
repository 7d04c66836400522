/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with one head over a sequence: where an encoder spends its time, for it grows with the
 * square of the sequence. */
#ifndef COLLOC_GPUMEMNET_GPUMEMNET_ATTENTION_H
#define COLLOC_GPUMEMNET_GPUMEMNET_ATTENTION_H

#include <stddef.h>

enum { ATTENTION_LANES = 8 }; /* places that are answered at a time */

/* A sequence's queries, keys and values: each channel is a row of `rows` floats, n of which count;
 * the rest are finite.
 */
struct attention {
    size_t n, rows; /* rows: n rounded up to whole ATTENTION_LANES */
    int width;      /* channels of each, at most GPUMEMNET_WIDTH_MAX */
    const float *q, *k, *v;
    float *scores; /* room for n * ATTENTION_LANES */
};

/*
 * What places t to t + ATTENTION_LANES - 1 (t a multiple of that) take from all others, softmax(q k
 * / sqrt(width)) v: `width` rows of ATTENTION_LANES. Each place's sums go over the sequence in its
 * order, so the answer is the same on every machine.
 */
void attention_take(const struct attention *attention, size_t t, float *ret_mixed);

#endif
