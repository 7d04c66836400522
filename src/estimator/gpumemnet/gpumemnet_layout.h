/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two networks of GPUMemNet, and the position of each of their weights in one array. Training
 * and estimation use the same layout.
 *
 * The ensemble (thesis, figure 5.7): perceptrons with 1-7 and 1-6 hidden layers (1-8, 4-8 and 4-6
 * for CNNs), of 8 neurons in the first and 4 in the others; each is Linear + batch norm + ReLU. The
 * logits of all members are averaged.
 *
 * The encoder: two Transformer encoders over the sequence of layers (width 6, 3 layers; width 4, 2
 * layers; one head, feed-forward width 4, norm after the sum, no dropout). Two Linear + batch norm
 * + ReLU and sinusoidal positions precede each. The sums of their outputs over the sequence and the
 * values are then the input of an ensemble.
 */
#ifndef COLLOC_GPUMEMNET_GPUMEMNET_LAYOUT_H
#define COLLOC_GPUMEMNET_GPUMEMNET_LAYOUT_H

#include <stddef.h>

#include "estimator/gpumemnet/gpumemnet_features.h"

enum gpumemnet_method { GPUMEMNET_ENSEMBLE, GPUMEMNET_ENCODER, GPUMEMNET_METHODS };

enum {
    GPUMEMNET_MEMBERS_MAX = 16, /* of an ensemble: that of CNNs has 16 (gpumemnet_layout.c) */
    GPUMEMNET_DEPTH_MAX = 8,    /* blocks of a perceptron */
    GPUMEMNET_CLASSES_MAX = 64, /* ranges of memory; chosen */
    GPUMEMNET_ENCODERS = 2,     /* as above, with the next three */
    GPUMEMNET_ENCODER_LAYERS_MAX = 3,
    GPUMEMNET_FEED_FORWARD = 4,
    GPUMEMNET_WIDTH_MAX = 8, /* of any layer */
};

#define GPUMEMNET_EPSILON 1e-5f /* of both norms */

/* y = W x + b; W has out rows. */
struct linear_layout {
    int in, out;
    size_t weight, bias;
};

struct norm_layout {
    int width;
    size_t scale, shift;
    size_t mean, variance; /* of a batch norm: the running ones of the training */
};

/* Linear, batch norm, ReLU. */
struct block_layout {
    struct linear_layout linear;
    struct norm_layout norm;
};

struct encoder_layer_layout {
    struct linear_layout qkv, projection, up, down;
    struct norm_layout norm_attention, norm_feed_forward;
};

struct encoder_layout {
    int width, n_layers;
    struct block_layout embedding[2];
    struct encoder_layer_layout layer[GPUMEMNET_ENCODER_LAYERS_MAX];
};

struct member_layout {
    int n_blocks;
    struct block_layout block[GPUMEMNET_DEPTH_MAX];
    struct linear_layout logits;
};

struct gpumemnet_layout {
    enum gpumemnet_method method;
    enum gpumemnet_value values[GPUMEMNET_VALUES]; /* its inputs, in order */
    int n_values;
    int n_encoders;
    struct encoder_layout encoder[GPUMEMNET_ENCODERS];
    int n_inputs; /* of each member */
    int n_members;
    struct member_layout member[GPUMEMNET_MEMBERS_MAX];
    int n_classes;
    size_t size; /* of the array */
};

/* Returns the thesis's name of the method: "mlp" or "transformer". */
const char *gpumemnet_method_name(enum gpumemnet_method method);

/* Calculates the layout of a network. */
void gpumemnet_layout_init(enum gpumemnet_family family, enum gpumemnet_method method,
    int n_classes, struct gpumemnet_layout *ret_layout);

/* The sinusoidal encoding of positions: each two of the `width` channels turn by a step from one
 * position to the next. */
struct gpumemnet_waves {
    int width;
    double step[GPUMEMNET_WIDTH_MAX / 2]; /* radians */
};

void gpumemnet_waves_init(int width, struct gpumemnet_waves *ret_waves);

/* Adds the encoding of position `place` to the channels. */
void gpumemnet_position(const struct gpumemnet_waves *waves, size_t place, float *channels);

#endif
