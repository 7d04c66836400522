/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers with their derivatives, over `n` rows. `weights` and `gradients` are arrays of one layout
 * (estimator/gpumemnet/gpumemnet_layout.h); backward adds to the gradients. Matrix products use
 * BLAS.
 */
#ifndef COLLOC_MEMNET_LAYERS_H
#define COLLOC_MEMNET_LAYERS_H

#include <stddef.h>

#include "estimator/gpumemnet/gpumemnet_layout.h"
#include "memnet/blas.h"
#include "memnet/scratch.h"

/* Computes y = W x + b for `n` rows. */
void linear_forward(const struct blas *blas, const struct linear_layout *layout,
    const float *weights, const float *x, size_t n, float *ret_y);

/* ret_dx: NULL: not computed. */
void linear_backward(const struct blas *blas, const struct linear_layout *layout,
    const float *weights, const float *x, const float *dy, size_t n, float *gradients,
    float *ret_dx);

void relu_forward(float *x, size_t n);                   /* in place */
void relu_backward(const float *y, float *dy, size_t n); /* in place; y is the forward output */

/* A norm's state for backward: the normalised rows and the inverse deviations. */
struct norm_tape {
    float *unit, *inverse;
};

/*
 * Batch norm in training: over the rows, channel by channel. The running mean and variance in
 * `weights` move a tenth of the way to the batch's, as in PyTorch. n is at least 2.
 */
void batch_norm_forward(const struct norm_layout *layout, float *weights, const float *x, size_t n,
    struct scratch *scratch, struct norm_tape *ret_tape, float *ret_y);
void batch_norm_backward(const struct norm_layout *layout, const float *weights,
    const struct norm_tape *tape, const float *dy, size_t n, float *gradients, float *ret_dx);

/* Layer norm: over the channels, row by row. */
void layer_norm_forward(const struct norm_layout *layout, const float *weights, const float *x,
    size_t n, struct scratch *scratch, struct norm_tape *ret_tape, float *ret_y);
void layer_norm_backward(const struct norm_layout *layout, const float *weights,
    const struct norm_tape *tape, const float *dy, size_t n, float *gradients, float *ret_dx);

/* Linear, batch norm, ReLU. */
struct block_tape {
    const float *x;
    struct norm_tape norm;
    float *y;
};

/* Returns y, in scratch memory. */
float *block_forward(const struct block_layout *layout, float *weights, const float *x, size_t n,
    struct scratch *scratch, struct block_tape *ret_tape);
/* Changes dy. */
void block_backward(const struct block_layout *layout, const float *weights,
    const struct block_tape *tape, float *dy, size_t n, struct scratch *scratch, float *gradients,
    float *ret_dx);

/*
 * Scaled dot-product attention of one head within one sequence. Each row of qkv is a query, a key
 * and a value of `width`; `weights` is n x n, a row per query.
 */
void attention_forward(const struct blas *blas, const float *qkv, size_t n, int width,
    float *ret_weights, float *ret_y);
/* Needs n x n floats of scratch. */
void attention_backward(const float *qkv, const float *weights, const float *dy, size_t n,
    int width, struct scratch *scratch, float *ret_dqkv);

#endif
