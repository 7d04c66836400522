/* SPDX-License-Identifier: Apache-2.0 */
/* A Transformer encoder over the layer sequences of a batch. Internal to the component. */
#ifndef COLLOC_MEMNET_ENCODER_H
#define COLLOC_MEMNET_ENCODER_H

#include "memnet/layers.h"
#include "memnet/training_step.h"

/* The sequences of a batch, concatenated. */
struct token_rows {
    float *x; /* n x TOKEN_SIZE */
    size_t n; /* over all sequences */
    const struct batch *batch;
};

struct encoder_layer_tape {
    const float *x;
    float *qkv, *weights, *mixed; /* attention weights: one square per sequence */
    struct norm_tape norm_attention, norm_feed_forward;
    float *between, *hidden;
};

struct encoder_tape {
    struct block_tape embedding[2];
    struct encoder_layer_tape layer[GPUMEMNET_ENCODER_LAYERS_MAX];
};

/* Returns the most floats of scratch that forward and backward need. */
size_t encoder_scratch(const struct encoder_layout *encoder, const struct batch *batch);

/* Sums the encoder's output over each sequence. ret_sums: a row of the encoder's width for each
 * sequence, `stride` floats apart. */
void encoder_forward(const struct encoder_layout *encoder, float *weights,
    const struct token_rows *tokens, struct scratch *scratch, struct encoder_tape *ret_tape,
    float *ret_sums, size_t stride);
void encoder_backward(const struct encoder_layout *encoder, const float *weights,
    const struct token_rows *tokens, const struct encoder_tape *tape, const float *dsums,
    size_t stride, struct scratch *scratch, float *gradients);

#endif
