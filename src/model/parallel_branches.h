/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a module that read the same map, and whose outputs are put together. Internal to this
 * component. */
#ifndef COLLOC_MODEL_PARALLEL_BRANCHES_H
#define COLLOC_MODEL_PARALLEL_BRANCHES_H

#include "model/shape_walk.h"

/* Begins row `i`: a branch, or the second part of a fork, sets the current map to what it reads. */
void parallel_branches_enter(struct shape_walk *walk, size_t i);

/* Sets the current map to what the branches of `module`, which just ended, put out together. */
void parallel_branches_leave(struct shape_walk *walk, const struct open_module *module);

#endif
