/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches of a block that run beside each other and are added up.
 *
 * A convolution and a normalisation are linear. Two such modules one after the other compute what
 * one alone can, so networks do not have them: if a block lists several without an activation
 * between them, each reads the block's input, and their results are added (RepVGG,
 * arXiv:2101.03697). A normalisation that the block begins with is such a branch, too.
 *
 * Example: a block of BatchNorm2d, Sequential(Conv2d 1 x 1, BatchNorm2d), Sequential(Conv2d 3 x 3,
 * BatchNorm2d) and ReLU keeps its input once, the outputs of two convolutions and the activated
 * sum; as a chain it would keep five maps.
 */
#include "estimator/physics/branches.h"

#include "model/module_tree.h"

static bool has_same_size(const struct layer *a, const struct layer *b)
{
    return a->activations.known && b->activations.known && a->rank == b->rank &&
           a->activations.value == b->activations.value;
}

/* Tests whether the layers of a block's child are one convolution and a normalisation after it; of
 * the first child, whether it is a normalisation. */
static bool is_linear_branch(const struct model *model, size_t child, size_t end, bool first)
{
    const struct layer *layers = model->layers;
    int convolutions = 0, norms = 0;
    for (size_t i = child; i < end; i++) {
        if (!layers[i].leaf || layers[i].kind == LAYER_RESHAPE)
            continue;
        if (layers[i].kind != LAYER_CONV && layers[i].kind != LAYER_NORM)
            return false;
        if (layers[i].kind == LAYER_CONV && norms > 0)
            return false;
        convolutions += layers[i].kind == LAYER_CONV;
        norms += layers[i].kind == LAYER_NORM;
    }
    if (layers[child].kind == LAYER_NORM)
        return first && norms == 1;
    return !layers[child].leaf && convolutions == 1 && norms == 1;
}

/* Returns the index after the last of the branches that block `block` begins with, or 0 when these
 * are not at least two. */
static size_t find_branches(const struct model *model, size_t block)
{
    const struct layer *layers = model->layers;
    size_t i = block + 1, end = module_end(model, block);
    int n = 0;
    while (i < end) {
        size_t next = module_end(model, i);
        if (!has_same_size(&layers[block], &layers[i]) || !is_linear_branch(model, i, next, n == 0))
            break;
        n++;
        i = next;
    }
    return n >= 2 ? i : 0;
}

static void begin_branches(struct builder *builder, size_t i)
{
    const struct layer *layer = &builder->extents.model->layers[i];
    bool searches = !layer->leaf && !builder->calls_activations;
    builder->branches = (struct branch_scope){.first = i + 1,
        .end = searches ? find_branches(builder->extents.model, i) : 0,
        .depth = layer->depth + 1,
        .entry = builder->current,
        .sum = TAPE_NONE};
}

/* Adds the result of the branch that has ended to those before it. */
static int add_result(struct builder *builder)
{
    struct branch_scope *scope = &builder->branches;
    if (scope->sum != TAPE_NONE) {
        int r = builder_merge(builder, scope->sum, builder->current, false,
            builder_extent(builder, builder->current));
        if (r < 0)
            return r;
    }
    scope->sum = builder->current;
    return 0;
}

static int end_branch(struct builder *builder, size_t i)
{
    struct branch_scope *scope = &builder->branches;
    bool within = i == scope->first ||
                  (i < scope->end && builder->extents.model->layers[i].depth > scope->depth);
    if (within || builder->current == TAPE_NONE)
        return 0;
    int r = add_result(builder);
    if (i >= scope->end)
        scope->end = 0;
    else /* the first branch of a network has made the data, tensor 0 */
        builder->current = scope->entry == TAPE_NONE ? 0 : scope->entry;
    return r;
}

int branches_enter(struct builder *builder, size_t i)
{
    int r = builder->branches.end > 0 ? end_branch(builder, i) : 0;
    if (r == 0 && builder->branches.end == 0)
        begin_branches(builder, i);
    return r;
}
