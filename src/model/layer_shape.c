/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of one layer, by its kind:
 *
 *     Conv2d(3, 64, kernel_size=7, stride=2, padding=3)    3 x 224 x 224  ->  64 x 112 x 112
 *     MaxPool2d(kernel_size=3, stride=2, padding=1)                       ->  64 x 56 x 56
 *     AdaptiveAvgPool2d(output_size=1)                                    ->  64 x 1 x 1
 *     Linear(in_features=64, out_features=10)                             ->  10
 *
 * Layers over tokens (Linear, LayerNorm) treat places as tokens. What only changes values, such as
 * an activation, leaves the map.
 */
#include "model/layer_shape.h"

#include "base/span_parts.h"
#include "model/layer_source.h"

static bool slide_window(const struct layer *layer, struct feature_map *map)
{
    struct window window = {0};
    return arguments_window(layer, map->rank, &window) &&
           feature_map_slide(map, &window, span_starts(layer->type, "ConvTranspose"));
}

static bool apply_convolution(struct shape_walk *walk, size_t i, struct feature_map *map)
{
    const struct layer *layer = &walk->model->layers[i];
    if (walk->guessed == 0 && layer_source_is_guess(walk, i, layer->in_size))
        walk->guessed = i;
    *map = layer_source(walk, i, layer->in_size);
    map->tokens = false;
    if (layer->in_size == LAYER_SIZE_UNKNOWN || map->rank == 0 || !slide_window(layer, map))
        return false;
    map->channels = layer->out_size;
    return true;
}

/* Over the channels of tokens; or over all features, or the mean of all places, of a map. */
static bool apply_linear(
    const struct shape_walk *walk, const struct layer *layer, struct feature_map *map)
{
    const struct open_module *attention = shape_walk_attention(walk);
    int64_t in = layer->in_size;
    if (in == LAYER_SIZE_UNKNOWN || (attention && attention->entry.channels != in))
        return false; /* in an attention: of positions, not of tokens */
    if (map->tokens && map->rank > 0 && map->channels * feature_map_places(map) != in)
        feature_map_widen_tokens(map, in);
    else
        *map = (struct feature_map){.rank = 0};
    map->channels = layer->out_size;
    return true;
}

/* A norm of other tokens than the current ones is listed beside the layer that it belongs to: both
 * read what the module around them reads. */
static bool apply_norm(struct shape_walk *walk, size_t i, struct feature_map *map)
{
    const struct layer *layer = &walk->model->layers[i];
    const struct open_module *module = shape_walk_innermost(walk);
    bool of_tokens = span_starts(layer->type, "LayerNorm") && !span_ends(layer->type, "2d");
    int64_t width = layer->in_size;
    bool is_beside = of_tokens && width != LAYER_SIZE_UNKNOWN && map->channels != width &&
                     map->rank > 0 && module;
    if (is_beside) {
        struct feature_map beside = module->entry;
        feature_map_widen_tokens(&beside, width);
        if (feature_map_is_sane(&beside))
            walk->made[i] = beside;
        return false;
    }
    if (width == LAYER_SIZE_UNKNOWN || map->channels == width)
        map->tokens |= of_tokens && map->rank > 0;
    else
        *map = layer_source(walk, i, width);
    return true;
}

static bool apply_pool(const struct layer *layer, struct feature_map *map)
{
    if (map->rank == 0)
        return true;
    if (layer->kind == LAYER_POOL_GLOBAL)
        return arguments_output_size(layer, map->rank, map->places);
    return slide_window(layer, map);
}

static bool is_resize(const struct layer *layer)
{
    return span_is(layer->type, "Resize");
}

static bool apply_merge(
    const struct shape_walk *walk, const struct layer *layer, struct feature_map *map)
{
    if (is_resize(layer)) /* of the input, wherever it is printed */
        return walk->n_leaves == 0;
    return !span_starts(layer->type, "Upsampl") || feature_map_enlarge(map, arguments_scale(layer));
}

bool layer_shape_apply(struct shape_walk *walk, size_t i, struct feature_map *map)
{
    const struct layer *layer = &walk->model->layers[i];
    switch (layer->kind) {
    case LAYER_CONV:
        return apply_convolution(walk, i, map);
    case LAYER_LINEAR:
        return apply_linear(walk, layer, map);
    case LAYER_NORM:
        return apply_norm(walk, i, map);
    case LAYER_POOL:
    case LAYER_POOL_GLOBAL:
        return apply_pool(layer, map);
    case LAYER_ATTENTION:
        map->tokens = true;
        return true;
    case LAYER_RESHAPE:
        if (span_is(layer->type, "Flatten"))
            feature_map_flatten(map);
        return true;
    case LAYER_MERGE:
        return apply_merge(walk, layer, map);
    case LAYER_EMBEDDING:
    case LAYER_RECURRENT:
        return false;
    default:
        return true;
    }
}

void layer_shape_resize_input(const struct model *model, struct feature_map *input)
{
    for (size_t i = 0; i < model->n_layers; i++) {
        struct feature_map resized = *input;
        int64_t shorter, longest;
        if (is_resize(&model->layers[i]) &&
            arguments_sides(&model->layers[i], &shorter, &longest) &&
            feature_map_resize(&resized, shorter, longest)) {
            *input = resized;
            return;
        }
    }
}
