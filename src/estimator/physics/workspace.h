/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scratch memory that a library's kernel allocates through the caching allocator and frees at
 * once. No framework reports it.
 */
#ifndef COLLOC_PHYSICS_WORKSPACE_H
#define COLLOC_PHYSICS_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum conv_pass { CONV_FORWARD, CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT, CONV_PASSES };

/* A convolution over a batch. Bytes are of its data type; a number that is not known is 0. */
struct convolution {
    double input, output, weight; /* bytes */
    double in_channels, out_channels;
    double in_positions, out_positions; /* of a map: height times width */
    double taps, groups;
    bool half; /* in 16 bit */
    enum conv_pass pass;
};

/* Returns the bytes of scratch memory that one pass of a convolution takes. */
double workspace_of(const struct convolution *convolution);

/* Variants of a replay, in which workspaces differ a little; 0 is the one without changes. Chosen:
 * sixteen tell no more. */
enum { WORKSPACE_VARIANTS = 8 };

/* Chosen on families left out: changes of 1 to 5 % tell steady networks from others as well. */
#define WORKSPACE_CHANGE_MAX 0.03

/* Returns the factor on workspace number `i` in this variant, the same for the same numbers: 1 in
 * variant 0, else 1 - WORKSPACE_CHANGE_MAX to 1 + WORKSPACE_CHANGE_MAX. */
double workspace_variant(uint32_t variant, size_t i);

#endif
