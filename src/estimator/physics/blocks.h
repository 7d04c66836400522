/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a tree: the operations in a block's own code, which are added where the block ends. */
#ifndef COLLOC_PHYSICS_BLOCKS_H
#define COLLOC_PHYSICS_BLOCKS_H

#include "estimator/physics/builder.h"

/* A block that contains the current layer. */
struct open_block {
    int layer;        /* its index in the model */
    int entry;        /* the tensor that was current when it began; TAPE_NONE */
    int first_tensor; /* the first of the tensors made in it */
};

/* The blocks around the current layer, the outermost first. */
struct block_stack {
    struct open_block open[MODEL_DEPTH_MAX];
    int n;
};

/*
 * Appends the operations that a block itself performs on the results of its layers. Returns 0, or a
 * fault as builder_tensor.
 */
int block_end(struct builder *builder, const struct open_block *block);

/*
 * Opens a block for layer i, which holds others. A block deeper than MODEL_DEPTH_MAX is left out.
 */
void blocks_begin(struct builder *builder, struct block_stack *blocks, size_t i);

/*
 * Ends the blocks that do not contain a layer at this depth. Returns 0, or a fault as
 * builder_tensor.
 */
int blocks_end(struct builder *builder, struct block_stack *blocks, int depth);

#endif
