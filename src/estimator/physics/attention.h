/* SPDX-License-Identifier: Apache-2.0 */
/* Attention between its projections: a function call, which no summary lists. */
#ifndef COLLOC_PHYSICS_ATTENTION_H
#define COLLOC_PHYSICS_ATTENTION_H

#include "estimator/physics/builder.h"

/* Called before a layer is taken: begins or ends the scope of an attention module. Returns 0 or a
 * fault. */
int attention_enter(struct builder *builder, const struct layer *layer);

/* Returns the input of a linear layer in the scope, which is the same for all projections;
 * TAPE_NONE where attention does not decide it. */
int attention_source(const struct builder *builder);

/*
 * Makes one operation of a module that is attention by its name and whose projections the text does
 * not show as working layers: the module uses their weights in functions, or holds raw weights. Its
 * linear layers count as taken. i: index of the layer. Returns 1 when layer i is such a module and
 * was taken, 0 when it is not, or a fault.
 */
int attention_take_whole(struct builder *builder, size_t i);

/* Called for a layer that does nothing to its input. If its shape is that of scores (heads x tokens
 * x tokens), the scores are stored. Returns 0 or a fault. */
int attention_scores(struct builder *builder, const struct layer *layer);

/* Called after a linear layer: once query, key and value are complete, appends attention itself.
 * Returns 0 or a fault. */
int attention_leave(struct builder *builder, const struct layer *layer, const struct op *op);

#endif
