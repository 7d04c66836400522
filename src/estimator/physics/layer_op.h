/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an operation of the tape of one layer of a summary. */
#ifndef COLLOC_PHYSICS_LAYER_OP_H
#define COLLOC_PHYSICS_LAYER_OP_H

#include "estimator/physics/builder.h"

/*
 * Appends the layer's operation. i: index of the layer in the model. extent: the layer's output,
 * not empty. Returns 0, or a fault as builder_tensor.
 */
int layer_op_append(struct builder *builder, size_t i, struct extent extent);

#endif
