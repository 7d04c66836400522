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

/* Tests whether the current layer is in a layer with an adapter, whose result is not there yet. */
static inline bool adapters_are_open(const struct builder *builder)
{
    return builder->adapter.end > 0;
}

/* Tests whether the current layer is of the adapter itself, not the one beside it. */
static inline bool adapters_is_second(const struct builder *builder)
{
    return adapters_are_open(builder) && builder->adapter.base_output != TAPE_NONE;
}

#endif
