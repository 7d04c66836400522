/* SPDX-License-Identifier: Apache-2.0 */
/* Branches of a block that run beside each other and are added up. */
#ifndef COLLOC_PHYSICS_BRANCHES_H
#define COLLOC_PHYSICS_BRANCHES_H

#include "estimator/physics/builder.h"

/*
 * Called before layer `i` is taken: ends a branch and begins the next one, which reads the block's
 * input; after the last one the sum of all is current. Returns 0, or a fault as builder_tensor.
 */
int branches_enter(struct builder *builder, size_t i);

#endif
