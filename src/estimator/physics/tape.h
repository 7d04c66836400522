/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One training step of a model as operations over tensors: the inputs and the output of each, the
 * tensors that autograd keeps for its gradient, and its multiply-adds. It is derived from the
 * layers of a summary. What the text lacks (the input of each layer, additions and concatenations
 * between layers, attention between its projections) is inferred from shapes and parameter counts;
 * where that fails, the operation is counted as doubtful.
 *
 * Sizes are per sample, in elements; a tensor holds `element_bytes` for each.
 */
#ifndef COLLOC_PHYSICS_TAPE_H
#define COLLOC_PHYSICS_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "estimator/estimator.h"
#include "estimator/physics/division.h"
#include "model/model.h"

enum { TAPE_NONE = -1, OP_INPUTS = 3 };    /* no tensor; most inputs of an operation */
enum { SINGLE_BYTES = 4, HALF_BYTES = 2 }; /* of an element in fp32; in fp16 and bf16 */

struct tensor {
    double elements;
    double first, last; /* sizes of the first and of the last dimension */
    int element_bytes;
    bool is_data;           /* the batch: has no gradient, stays until the next step's */
    bool needs_no_gradient; /* nothing that it was made from is trained */
};

struct op {
    enum layer_kind kind;
    int layer;                     /* index in the model; TAPE_NONE: not in the text */
    int inputs[OP_INPUTS], output; /* tensors; TAPE_NONE */
    bool keeps_inputs, keeps_output;
    bool in_place;     /* the output is the input's memory */
    double kept_bytes; /* per sample, beside tensors: masks, indices, statistics, casts */
    double kept_map;   /* bytes per sample of each map that these are, the last one may be smaller;
                        * 0: one tensor */
    double scratch,
        sample_scratch;  /* of a recurrent layer's kernels, bytes, and bytes per sample */
    double weight, bias; /* elements of its parameters: the largest tensor, and the others */
    double buffers;      /* elements that are not trained: running statistics */
    double tied;         /* elements of an embedding's weight, which it multiplies by instead of a
                    * separate one */
    int tied_to;         /* the operation that owns it; TAPE_NONE */
    bool frozen;         /* its parameters are not trained */
    double weight_bytes; /* of an element of its parameters; 0: of fp32 */
    double unpacked;     /* bytes of the quantised weight that a product reads, made for each */
    double macs;         /* multiply-adds per sample */
    double window;       /* of a convolution: taps of its kernel; 0 elsewhere */
    bool depthwise;
    bool turned;       /* a convolution whose input has its channels last */
    bool standardizes; /* a convolution that standardises its weight at each step */
};

/* Doubts of the construction: features of the residual, which decide how wide the quantiles are. */
struct tape_doubts {
    double unknown_share;  /* of outputs of layers whose type is not known */
    int unknown_layer;     /* the first of them; TAPE_NONE */
    double unshaped_share; /* of the leaves, without a shape */
    double hidden_share;   /* of the parameters in blocks whose layers are left out */
    double most_taps;      /* of a convolution in 32 bit over anything but the data */
    size_t n_merges;       /* tensors that no layer of the text makes */
    size_t n_guessed;      /* operations whose input was not found */
};

/* Operations [begin, end) of the tape. */
struct block_range {
    size_t begin, end;
};

struct tape {
    struct op *ops;
    struct tensor *tensors;
    size_t n_ops, n_tensors, capacity_ops, capacity_tensors;
    int result; /* the tensor that the model returns; the loss reads the last one */
    double batch;
    double parameters;                       /* all, also those in no operation */
    double loose_parameters;                 /* in no operation */
    double loose_frozen, loose_frozen_bytes; /* beside these: that are not trained */
    bool autocast;
    bool half_weights;              /* weights and all that follows from their type are in 16 bit */
    bool multiplies, convolves;     /* the libraries that the network uses */
    bool gradients_reach_all;       /* model.h */
    bool raises_logits;             /* the model's own loss turns 16-bit logits into 32 bit first */
    bool releases_result;           /* the loop keeps the loss alone, not the model's output */
    bool sequence_is_longest;       /* it is not given: the longest that the network takes */
    double sequence;                /* tokens per sample; 0 where there are none */
    struct block_range *recomputed; /* blocks that run again in the backward pass, in order */
    size_t n_recomputed;
    struct tape_doubts doubts;
    struct division division; /* among the processes of a training on several GPUs */
};

/* Tests whether activations are in 16 bit: by autocast, or as the weights are. */
static inline bool tape_is_half(const struct tape *tape)
{
    return tape->autocast || tape->half_weights;
}

/* Returns the bytes of an element of a weight that no operation stores otherwise. */
static inline int tape_weight_bytes_each(const struct tape *tape)
{
    return tape->half_weights ? HALF_BYTES : SINGLE_BYTES;
}

#endif
