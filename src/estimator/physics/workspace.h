/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scratch memory that a library's kernel takes through the caching allocator and gives back at
 * once. cuDNN's fast kernels for dense convolutions read and write channels last, and turn ordinary
 * maps round: input and output once more, or one of them, depending on the kernel, and the weight.
 * No framework reports it.
 */
#ifndef COLLOC_PHYSICS_WORKSPACE_H
#define COLLOC_PHYSICS_WORKSPACE_H

#include <stdbool.h>

enum conv_pass { CONV_FORWARD, CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT, CONV_PASSES };

struct convolution {
    double input, output, weight; /* bytes */
    double inputs, outputs;       /* channels; 0: not known */
    bool dense;                   /* not in groups */
    bool pointwise;               /* a kernel of one tap */
    bool half;                    /* in 16 bit */
    enum conv_pass pass;
};

/* Of the input and of the output: workspace_shares.inc, from data/memory by scripts/fit-estimators.
 */
struct workspace_share {
    double input, output;
};

struct workspace_shares {
    struct workspace_share at[2][2][CONV_PASSES]; /* [in 16 bit][pointwise][pass] */
};

extern const struct workspace_shares workspace_shares;

double workspace_of(const struct convolution *convolution, const struct workspace_shares *shares);

#endif
