/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scratch memory that a library's kernel allocates through the caching allocator and frees at
 * once. No framework reports it.
 */
#ifndef COLLOC_PHYSICS_WORKSPACE_H
#define COLLOC_PHYSICS_WORKSPACE_H

#include <stdbool.h>

enum conv_precision { CONV_SINGLE, CONV_HALF, CONV_PRECISIONS };
enum conv_taps {
    CONV_WINDOWED,
    CONV_POINTWISE,
    CONV_TAPS
}; /* of a kernel with several taps, and
                                                              * with one */
enum conv_pass { CONV_FORWARD, CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT, CONV_PASSES };

struct convolution {
    double input, output, weight; /* bytes */
    bool dense;                   /* has one group */
    enum conv_precision precision;
    enum conv_taps taps;
    enum conv_pass pass;
};

/* The shares of the input and of the output in the workspace. */
struct workspace_share {
    double input, output;
};

struct workspace_shares {
    struct workspace_share at[CONV_PRECISIONS][CONV_TAPS][CONV_PASSES];
};

/* The shares that were fitted to measured runs. */
extern const struct workspace_shares workspace_shares;

/* Returns the bytes of scratch memory that one pass of a convolution takes. */
double workspace_of(const struct convolution *convolution, const struct workspace_shares *shares);

#endif
