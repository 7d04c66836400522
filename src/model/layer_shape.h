/* SPDX-License-Identifier: Apache-2.0 */
/* What a layer of each kind makes of the map that it reads. Internal to this component. */
#ifndef COLLOC_MODEL_LAYER_SHAPE_H
#define COLLOC_MODEL_LAYER_SHAPE_H

#include "model/shape_walk.h"

/*
 * Applies layer `i` to a map.
 *
 * map: the current map; becomes what the layer puts out
 *
 * Returns false where the output does not follow from the arguments; `map` is then spoilt.
 */
bool layer_shape_apply(struct shape_walk *walk, size_t i, struct feature_map *map);

/* Scales an input by the first layer that resizes images, if the network has one. */
void layer_shape_resize_input(const struct model *model, struct feature_map *input);

#endif
