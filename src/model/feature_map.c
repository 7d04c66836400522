/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic of feature maps: channels, and places (height and width, or the dimensions that the
 * map has). A window over n places makes, as PyTorch documents it,
 *
 *     (n + 2 padding - dilation (kernel - 1) - 1) / stride + 1        Conv2d, MaxPool2d
 *     (n - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1   ConvTranspose2d
 *
 * so kernel 7, stride 2 and padding 3 make 112 of 224. Sizes are refused before they overflow.
 */
#include "model/feature_map.h"

#include <math.h>
#include <string.h>

/* Of one sample. Chosen: far above any that trains; input_shape.c names it. */
static const double elements_most = 1e12;

int64_t feature_map_places(const struct feature_map *map)
{
    int64_t places = 1;
    for (int i = 0; i < map->rank; i++)
        places *= map->places[i];
    return places;
}

bool feature_map_is_sane(const struct feature_map *map)
{
    int64_t places = feature_map_places(map);
    return map->channels > 0 && places > 0 &&
           (double)map->channels * (double)places <= elements_most;
}

bool feature_map_is_vector(const struct feature_map *map)
{
    return feature_map_places(map) == 1;
}

bool feature_map_equal_places(const struct feature_map *map, const struct feature_map *other)
{
    return map->rank == other->rank &&
           memcmp(map->places, other->places, (size_t)map->rank * sizeof *map->places) == 0;
}

/* Returns how many places a window makes of `n` places in dimension `i`; below 1: none. */
static int64_t slide_along(const struct window *w, int i, int64_t n, bool is_transposed)
{
    int64_t reach = w->dilation[i] * (w->kernel[i] - 1);
    if (is_transposed)
        return (n - 1) * w->stride[i] - 2 * w->padding[i] + reach + w->output_padding[i] + 1;
    if (w->same)
        return (n + w->stride[i] - 1) / w->stride[i];
    int64_t rounding = w->ceiling ? w->stride[i] - 1 : 0;
    return (n + 2 * w->padding[i] - reach - 1 + rounding) / w->stride[i] + 1;
}

bool feature_map_slide(struct feature_map *map, const struct window *window, bool is_transposed)
{
    for (int i = 0; i < map->rank; i++) {
        int64_t n = slide_along(window, i, map->places[i], is_transposed);
        if (n < 1 || n > WINDOW_SIZE_MAX)
            return false;
        map->places[i] = n;
    }
    return true;
}

bool feature_map_enlarge(struct feature_map *map, int64_t scale)
{
    for (int i = 0; i < map->rank; i++) {
        if (scale < 1 || map->places[i] > WINDOW_SIZE_MAX / scale)
            return false;
        map->places[i] *= scale;
    }
    return true;
}

bool feature_map_resize(struct feature_map *map, int64_t shorter, int64_t longest)
{
    enum { SIDES = 2, FILL = 32 };
    if (map->rank != SIDES)
        return false;
    const int64_t *sides = map->places;
    bool is_wide = sides[1] > sides[0];
    double scale = fmin(
        (double)shorter / (double)sides[!is_wide], (double)longest / (double)sides[is_wide]);
    for (int i = 0; i < SIDES; i++) {
        double side = floor((double)sides[i] * scale);
        if (side < 1 || side > WINDOW_SIZE_MAX)
            return false;
        map->places[i] = ((int64_t)side + FILL - 1) / FILL * FILL;
    }
    return true;
}

void feature_map_flatten(struct feature_map *map)
{
    map->channels *= feature_map_places(map);
    map->rank = 0;
    map->tokens = false;
}

void feature_map_widen_tokens(struct feature_map *map, int64_t width)
{
    int64_t places = feature_map_places(map), times = width / map->channels;
    if (width > map->channels && width % map->channels == 0 && places % times == 0)
        *map = (struct feature_map){.places = {places / times}, .rank = 1};
    map->channels = width;
    map->tokens = true;
}
