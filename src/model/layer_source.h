/* SPDX-License-Identifier: Apache-2.0 */
/* Which map a layer reads, where a print does not show it. Internal to this component. */
#ifndef COLLOC_MODEL_LAYER_SOURCE_H
#define COLLOC_MODEL_LAYER_SOURCE_H

#include "model/shape_walk.h"

/* Returns the map that layer `i` reads, given how many channels it reads. Where no map with as many
 * is known, it reads several put together, or a part of one: their channels become `channels`. */
struct feature_map layer_source(struct shape_walk *walk, size_t i, int64_t channels);

/* Tests whether the map that layer_source would return is a guess. */
bool layer_source_is_guess(const struct shape_walk *walk, size_t i, int64_t channels);

#endif
