/* SPDX-License-Identifier: Apache-2.0 */
/* The size of a feature map, which a layer reads or makes, for one sample. Internal to this
 * component. */
#ifndef COLLOC_MODEL_FEATURE_MAP_H
#define COLLOC_MODEL_FEATURE_MAP_H

#include "model/format.h"

enum { FEATURE_MAP_RANK_MAX = WINDOW_RANK_MAX };

struct feature_map {
    int64_t channels; /* 0: there is no map */
    int64_t places[FEATURE_MAP_RANK_MAX];
    int rank;    /* how many dimensions `places` has; 0: features alone */
    bool tokens; /* channels are the last dimension */
};

/* Returns the product of the places: 1 for features alone. */
int64_t feature_map_places(const struct feature_map *map);

/* Tests whether there is a map, neither without places nor so large that it must be a mistake. No
 * product of the sizes of such a map overflows. */
bool feature_map_is_sane(const struct feature_map *map);

/* Tests whether the map has one number for each channel. */
bool feature_map_is_vector(const struct feature_map *map);

/* Tests whether two maps have equal height and width, whatever their channels. */
bool feature_map_equal_places(const struct feature_map *map, const struct feature_map *other);

/*
 * Changes the places as a window that slides over the map does.
 *
 * is_transposed: the window enlarges the map, as in ConvTranspose2d
 *
 * Returns whether each dimension has from one place to WINDOW_SIZE_MAX; else `map` is spoilt.
 */
bool feature_map_slide(struct feature_map *map, const struct window *window, bool is_transposed);

/* Multiplies each dimension of the places. Returns as feature_map_slide does. */
bool feature_map_enlarge(struct feature_map *map, int64_t scale);

/*
 * Scales an image as torchvision's detectors do in front of the network: its shorter side to
 * `shorter`, unless the longer one then exceeds `longest`; and both up to multiples of 32. Returns
 * as feature_map_slide does, and false for what has not two sides.
 */
bool feature_map_resize(struct feature_map *map, int64_t shorter, int64_t longest);

/* Makes one vector of the whole map. */
void feature_map_flatten(struct feature_map *map);

/* Makes tokens `width` wide: neighbours are merged into one (patch merging), or a function has
 * divided or joined their channels. */
void feature_map_widen_tokens(struct feature_map *map, int64_t width);

#endif
