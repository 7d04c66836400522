/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of which only a part is trained: what their other weights take, and how far gradients
 * flow back. */
#ifndef COLLOC_PHYSICS_TRAINED_PART_H
#define COLLOC_PHYSICS_TRAINED_PART_H

#include "estimator/physics/builder.h"

/* Sets how the parameters of a layer's operation are stored: weight_bytes, unpacked. To be called
 * when its parameters are set. */
void trained_part_set_storage(
    const struct builder *builder, const struct layer *layer, struct op *op);

/* Adds parameters that stand in no operation. */
void trained_part_add_loose(struct builder *builder, const struct layer *layer, double parameters);

/* Takes what autograd does not keep out of a finished tape, and marks the tensors that get no
 * gradient. Nothing changes where all is trained. */
void trained_part_mark(struct tape *tape);

/* Returns the bytes of an element of the operation's parameters. */
static inline double op_weight_bytes(const struct op *op)
{
    return op->weight_bytes > 0 ? op->weight_bytes : SINGLE_BYTES;
}

/* Tests whether autograd does not keep the operation's input, since its weight is not trained. */
static inline bool op_needs_no_input(const struct op *op)
{
    return op->frozen && op->kind == LAYER_LINEAR;
}

/* Tests whether the operation has parameters that are trained. */
static inline bool op_is_trained(const struct op *op)
{
    return !op->frozen && op->weight + op->bias + op->tied > 0;
}

/* Returns how many of the tape's parameters are trained. */
double tape_trained_parameters(const struct tape *tape);

/* Returns the bytes of these, which are those of their gradients and of each optimizer state. */
double tape_trained_bytes(const struct tape *tape);

/* Returns the bytes of all weights. */
double tape_weight_bytes(const struct tape *tape);

#endif
