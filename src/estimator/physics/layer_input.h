/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the tensor that a layer is applied to. */
#ifndef COLLOC_PHYSICS_LAYER_INPUT_H
#define COLLOC_PHYSICS_LAYER_INPUT_H

#include "estimator/physics/builder.h"

/*
 * Finds the tensor that a layer is applied to: the current one where its size fits, else an earlier
 * one, else a merge of some, which is appended. extent: the layer's output. op: gets inputs[0],
 * window and depthwise. Returns 0, or a fault as builder_tensor.
 */
int layer_input_find(
    struct builder *builder, const struct layer *layer, struct extent extent, struct op *op);

#endif
