/* SPDX-License-Identifier: Apache-2.0 */
/* A tape while it is built. Internal to tape.c, source.c and attention.c. */
#ifndef COLLOC_ESTIMATOR_BUILDER_H
#define COLLOC_ESTIMATOR_BUILDER_H

#include "estimator/extent.h"
#include "estimator/keep.h"
#include "estimator/tape.h"

/* The innermost module around a layer that is attention by its type's name. */
struct attention_scope {
    bool open, done;
    bool scores; /* are written out, not fused away */
    int depth;
    int source;     /* what the projections are applied to */
    int project[3]; /* query, key and value, so far */
    int n;
};

/* A block of a tree that the layers now taken stand in. */
struct open_block {
    int layer, entry; /* the tensor that was current when it began; TAPE_NONE */
    int first;        /* of the tensors made in it */
};

struct builder {
    struct tape *tape;
    struct extent_context extents;
    int current;    /* the tensor made last; TAPE_NONE before the first layer */
    bool *consumed; /* by tensor: an operation has it as its input */
    bool *hidden;   /* by tensor: made in a block that has ended, and not what that put out */
    bool *done;     /* by layer: taken before its turn */
    struct attention_scope scope;
    bool calls_activations;
    bool drops_within; /* dropout between the layers has an effect */
    double unknown_elements, all_elements;
    struct fault *fault;
};

/* A new tensor; negative: a fault. */
int builder_tensor(struct builder *builder, struct extent extent, int element_bytes);

/* Appends an operation; its input becomes consumed, its output current. */
int builder_op(struct builder *builder, const struct op *op);

/* An operation that the text does not show: puts `extent` together from up to two tensors. */
int builder_merge(struct builder *builder, int first, int second, bool keeps, struct extent extent);

/* A map scaled by one number per channel, as squeeze-and-excitation does. */
bool is_scale_of(struct extent scale, struct extent map);

struct extent builder_extent(const struct builder *builder, int tensor);

/*
 * The tensor that a layer is applied to: the current one where its size fits, an earlier one, or a
 * merge of some. Fills op->inputs[0], window and depthwise.
 */
int source_find(
    struct builder *builder, const struct layer *layer, struct extent extent, struct op *op);

/* Before a layer is taken: scopes begin and end. 0 or a fault. */
int attention_enter(struct builder *builder, const struct layer *layer);

/* Input for a linear layer in the scope: all projections have the same. TAPE_NONE where attention
 * has no say. */
int attention_source(const struct builder *builder);

/*
 * A module that is attention by its name and whose projections the text does not show at work (it
 * uses their weights in functions, or holds raw ones): one operation for all of it. 1 when layer
 * `i` is such a module and was taken, 0, or a fault. Its linear layers are done.
 */
int attention_take_whole(struct builder *builder, size_t i);

/* At a layer that does nothing to what it is given: scores, for each head, between all tokens, show
 * that they are there. */
int attention_scores(struct builder *builder, const struct layer *layer);

/* After a linear layer: when it completed query, key and value, attention itself follows. */
int attention_leave(struct builder *builder, const struct layer *layer, const struct op *op);

#endif
