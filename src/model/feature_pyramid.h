/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of convolutions that make maps of one kind from several maps. Internal to this
 * component. */
#ifndef COLLOC_MODEL_FEATURE_PYRAMID_H
#define COLLOC_MODEL_FEATURE_PYRAMID_H

#include "model/shape_walk.h"

/* Finds out whether the module that was opened last is such a list, and what it reads. */
void feature_pyramid_enter(struct shape_walk *walk, struct open_module *list);

/* Begins row `i`: a member of a list sets the current map to what it reads. */
void feature_pyramid_enter_member(struct shape_walk *walk, size_t i);

/* Ends row `i`: if it is in a list, the list keeps its largest map. */
void feature_pyramid_leave_member(struct shape_walk *walk, size_t i);

/* Sets the current map to what `module`, which just ended, puts out if it is a list, or has one. */
void feature_pyramid_leave(struct shape_walk *walk, const struct open_module *module);

#endif
