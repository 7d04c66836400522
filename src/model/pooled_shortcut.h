/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks whose shortcut comes first. Internal to this component. */
#ifndef COLLOC_MODEL_POOLED_SHORTCUT_H
#define COLLOC_MODEL_POOLED_SHORTCUT_H

#include "model/shape_walk.h"

/* Begins row `i`: the other part of such a block sets the current map to what the block reads. */
void pooled_shortcut_enter_beside(struct shape_walk *walk, size_t i);

#endif
