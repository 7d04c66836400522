/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters beside a layer that is not trained. */
#ifndef COLLOC_PHYSICS_ADAPTERS_H
#define COLLOC_PHYSICS_ADAPTERS_H

#include "estimator/physics/builder.h"

/*
 * Called before layer `i` is taken, also for the index after the last layer: begins a layer with an
 * adapter, its adapter, or ends both. Returns 0, or a fault as builder_tensor.
 */
int adapters_enter(struct builder *builder, size_t i);

#endif
