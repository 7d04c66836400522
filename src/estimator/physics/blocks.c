/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of a tree: the additions, products and concatenations in a block's own code, which no
 * layer shows.
 *
 * torchinfo and a printed module show a tree, in which a block's row has the size of the block's
 * output. The difference from its last layer's output shows the block's own operation:
 *
 *     the same size       a residual block adds its input; a block with parameters outside of its
 *                         layers scales the result by them; a gating unit multiplies two halves
 *     another size        it concatenated or enlarged maps, or scaled its input by one number for
 *                         each channel (squeeze-and-excitation)
 *
 * Each becomes an operation of the tape. A block that has ended hides the tensors that were made in
 * it: as a rule, layers outside read only the block's output.
 */
#include "estimator/physics/blocks.h"

#include "estimator/physics/library_rules.h"
#include "estimator/physics/partition.h"

/* Chosen: the branches of published blocks (attention, feed-forward and a local convolution), and
 * one more. */
enum { BRANCHES_MAX = 4 };

/* The parameters of a block outside of its layers, one per channel for each of its branches, scale
 * the results of the branches, which are kept. */
static int scale_branches(struct builder *builder, const struct layer *block)
{
    struct extent now = builder_extent(builder, builder->current);
    double widths[2] = {now.first, now.last}, scales = 0;
    for (int i = block->rank == 2; i < 2; i++) /* tokens come first, channels last */
        for (int branches = 1; branches <= BRANCHES_MAX; branches++)
            if ((double)block->parameters == branches * widths[i])
                scales = branches;
    if (scales == 0)
        return 0;
    struct op op = {.kind = LAYER_MERGE,
        .layer = TAPE_NONE,
        .inputs = {builder->current, TAPE_NONE, TAPE_NONE},
        .keeps_inputs = true};
    op.kept_bytes = (scales - 1) * now.elements *
                    builder->tape->tensors[builder->current].element_bytes;
    op.kept_map = now.elements * builder->tape->tensors[builder->current].element_bytes;
    op.output = builder_tensor(builder, now, SINGLE_BYTES);
    return op.output < 0 ? op.output : builder_op(builder, &op);
}

/*
 * Tests whether a residual block makes a new map by adding its input: that is so if autograd keeps
 * the result of the branch, which the sum may not replace then. An activation of the block follows
 * the sum.
 */
static bool adds_to_entry(
    const struct builder *builder, const struct open_block *open, const struct layer *block)
{
    const struct op *last = &builder->tape->ops[builder->tape->n_ops - 1];
    bool residual = library_adds_residual(block->type);
    bool within = last->layer != TAPE_NONE &&
                  builder->extents.model->layers[last->layer].depth > block->depth + 1;
    return residual && within && last->keeps_output && last->output == builder->current &&
           open->entry != builder->current;
}

static int end_equal_block(
    struct builder *builder, const struct open_block *open, const struct layer *block)
{
    if (library_is_gated(block->type)) {
        int gated = builder_merge(
            builder, builder->current, TAPE_NONE, true, builder_extent(builder, builder->current));
        return gated < 0 ? gated : 0;
    }
    bool as_given = open->entry != TAPE_NONE &&
                    builder_extent(builder, open->entry).elements ==
                        builder_extent(builder, builder->current).elements;
    int r = block->parameters > 0 && as_given ? scale_branches(builder, block) : 0;
    if (r < 0 || !as_given || !adds_to_entry(builder, open, block))
        return r;
    r = builder_merge(
        builder, builder->current, open->entry, false, builder_extent(builder, builder->current));
    return r < 0 ? r : 0;
}

/* An output with the same channels on more places (and not on one, which is a gate) is an enlarged
 * map, by interpolation, which autocast leaves in 32 bit. */
static bool is_resized(struct extent now, struct extent extent)
{
    return extent.first == now.first && extent.elements > now.elements && now.elements > now.first;
}

int block_end(struct builder *builder, const struct open_block *open)
{
    const struct layer *block = &builder->extents.model->layers[open->layer];
    if (builder->current == TAPE_NONE || !block->activations.known || block->rank < 2)
        return 0;
    struct extent now = builder_extent(builder, builder->current);
    double elements = (double)block->activations.value * partition_parts(builder, block);
    if (builder->extents.sequence != builder->extents.shown_sequence)
        return 0;
    if (elements == now.elements)
        return end_equal_block(builder, open, block);
    if (block->rank < 3)
        return 0;
    struct extent extent = {
        elements, (double)block->shape[0], (double)block->shape[block->rank - 1]};
    bool scales = open->entry != TAPE_NONE && extent_is_scale_of(now, extent) &&
                  builder_extent(builder, open->entry).elements == elements;
    int r = scales ? builder_merge(builder, open->entry, builder->current, true, extent)
                   : builder_merge(builder, builder->current, TAPE_NONE, false, extent);
    if (r >= 0 && is_resized(now, extent))
        builder->tape->tensors[r].element_bytes = SINGLE_BYTES;
    return r < 0 ? r : 0;
}

void blocks_begin(struct builder *builder, struct block_stack *blocks, size_t i)
{
    if (blocks->n < MODEL_DEPTH_MAX)
        blocks->open[blocks->n++] = (struct open_block){
            (int)i, builder->current, (int)builder->tape->n_tensors};
}

/* As a rule, other layers read only a block's output. */
static void hide_insides(struct builder *builder, const struct open_block *open)
{
    for (int t = open->first_tensor; t < (int)builder->tape->n_tensors; t++)
        builder->hidden[t] |= t != builder->current;
}

int blocks_end(struct builder *builder, struct block_stack *blocks, int depth)
{
    const struct layer *layers = builder->extents.model->layers;
    int r = 0;
    while (r == 0 && blocks->n > 0 && layers[blocks->open[blocks->n - 1].layer].depth >= depth) {
        const struct open_block *block = &blocks->open[--blocks->n];
        r = block_end(builder, block);
        hide_insides(builder, block);
    }
    return r;
}
