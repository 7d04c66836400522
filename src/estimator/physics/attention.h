/* SPDX-License-Identifier: Apache-2.0 */
/* The attention between projections, which no summary lists. */
#ifndef COLLOC_PHYSICS_ATTENTION_H
#define COLLOC_PHYSICS_ATTENTION_H

#include "estimator/physics/builder.h"

/* Before a layer is taken: the scope of an attention module begins or ends with it. Returns 0 or a
 * fault. */
int attention_enter(struct builder *builder, const struct layer *layer);

/* Returns the input of a linear layer in the scope, which is the same for all projections;
 * TAPE_NONE where attention does not decide it. */
int attention_source(const struct builder *builder);

/*
 * Makes one operation of a module that is attention by its name and whose projections the text does
 * not show at work: it uses their weights in functions, or holds raw ones. Its linear layers are
 * done with it.
 * i: index of the layer.
 * Returns 1 when layer i is such a module and was taken, 0 when it is not, or a fault.
 */
int attention_take_whole(struct builder *builder, size_t i);

/* At a layer that does nothing to its input: scores for each head between all tokens show that they
 * are stored. Returns 0 or a fault. */
int attention_scores(struct builder *builder, const struct layer *layer);

/* After a linear layer: when it completed query, key and value, attention itself follows. Returns 0
 * or a fault. */
int attention_leave(struct builder *builder, const struct layer *layer, const struct op *op);

#endif
