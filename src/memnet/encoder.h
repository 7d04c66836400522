/* SPDX-License-Identifier: Apache-2.0 */
/* A Transformer encoder over the layer sequences of a batch. Internal to the room. */
#ifndef COLLOC_MEMNET_ENCODER_H
#define COLLOC_MEMNET_ENCODER_H

#include "memnet/layers.h"
#include "memnet/step.h"

/* The sequences of a batch one behind the other. */
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

/* Floats of scratch that both directions take at most. */
size_t encoder_scratch(const struct encoder_layout *encoder, const struct batch *batch);

/* ret_sums: a row of the encoder's width for each sequence, `stride` apart. */
void encoder_forward(const struct encoder_layout *encoder, float *weights,
    const struct token_rows *tokens, struct scratch *scratch, struct encoder_tape *ret_tape,
    float *ret_sums, size_t stride);
void encoder_backward(const struct encoder_layout *encoder, const float *weights,
    const struct token_rows *tokens, const struct encoder_tape *tape, const float *dsums,
    size_t stride, struct scratch *scratch, float *gradients);

#endif
