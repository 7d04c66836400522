/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of a summary as an operation of the tape. */
#ifndef COLLOC_PHYSICS_LAYER_OP_H
#define COLLOC_PHYSICS_LAYER_OP_H

#include "estimator/physics/builder.h"

/*
 * Appends the operation that a layer is.
 * i: index of the layer in the model.
 * extent: what the layer puts out, not empty.
 * Returns 0, or a fault as builder_tensor.
 */
int layer_op_append(struct builder *builder, size_t i, struct extent extent);

#endif
