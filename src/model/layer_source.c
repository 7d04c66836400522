/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A printed module lists layers, not the program that calls them. A layer reads the current map,
 * unless its arguments say that it reads another number of channels. Then it reads
 *
 *  1. the input of a block around it (a shortcut, a parallel branch), else
 *  2. the last map with as many channels, else
 *  3. several maps put together, which have the places of the current one.
 *
 *     (block): Block(                               entry: 64 channels
 *       (conv): Conv2d(64, 128, ...)                reads the current map
 *       (downsample): Conv2d(64, 128, ...)          reads the entry of (block): not 128 channels
 *     )
 *     (fuse): Conv2d(192, 32, ...)                  reads 64 and 128 channels put together: a guess
 */
#include "model/layer_source.h"

/* Tests whether the layer is in a list of convolutions that make maps of one kind. */
static bool is_in_pyramid(const struct shape_walk *walk)
{
    for (int i = walk->n_open - 1; i >= 0 && i >= walk->n_open - 2; i--)
        if (walk->open[i].is_pyramid)
            return true;
    return false;
}

/* Finds the last output of a module, not of a layer, of as many channels. */
static const struct feature_map *find_output(
    const struct shape_walk *walk, size_t layer, int64_t channels)
{
    for (size_t k = layer; k > 0 && k + SHAPE_LOOK_BACK > layer; k--)
        if (walk->made[k - 1].channels == channels && !walk->model->layers[k - 1].leaf)
            return &walk->made[k - 1];
    return NULL;
}

/* Finds the last map of as many channels that has the places of the current one; any places, if the
 * current one is a result or a gate. */
static const struct feature_map *find_made(
    const struct shape_walk *walk, size_t layer, int64_t channels)
{
    for (size_t k = layer; k > 0 && k + SHAPE_LOOK_BACK > layer; k--)
        if (walk->made[k - 1].channels == channels &&
            (feature_map_is_vector(&walk->current) ||
                feature_map_equal_places(&walk->made[k - 1], &walk->current)))
            return &walk->made[k - 1];
    return NULL;
}

/* Finds a map of as many channels: in a list of maps what a module put out; else the input of a
 * module around the layer, or one made before. */
static const struct feature_map *find_map(
    const struct shape_walk *walk, size_t layer, int64_t channels)
{
    const struct feature_map *output = is_in_pyramid(walk) ? find_output(walk, layer, channels)
                                                           : NULL;
    if (output)
        return output;
    for (int i = walk->n_open - 1; i >= 0; i--)
        if (walk->open[i].entry.channels == channels)
            return &walk->open[i].entry;
    return find_made(walk, layer, channels);
}

/* Sets the channels of a map, unless it would be too large. */
static void widen_map(struct feature_map *map, int64_t channels)
{
    struct feature_map wide = *map;
    wide.channels = channels;
    if (feature_map_is_sane(&wide))
        *map = wide;
}

/* The module that ended last put several maps together: its output has the channels of all, and so
 * have the inputs of the modules that began since. */
static void join_output(struct shape_walk *walk, size_t layer, int64_t channels)
{
    struct feature_map *made = &walk->made[walk->ended];
    bool is_next = walk->ended < layer && made->channels == walk->current.channels &&
                   walk->ended_at == walk->n_leaves;
    if (!is_next)
        return;
    widen_map(made, channels);
    for (int i = 0; i < walk->n_open; i++)
        if (walk->open[i].layer > walk->ended)
            widen_map(&walk->open[i].entry, channels);
}

struct feature_map layer_source(struct shape_walk *walk, size_t i, int64_t channels)
{
    if (walk->current.channels == channels)
        return walk->current;
    const struct feature_map *found = find_map(walk, i, channels);
    if (found)
        return *found;
    struct feature_map joined = walk->current; /* of several maps, or a part of one */
    joined.channels = channels;
    if (channels > walk->current.channels)
        join_output(walk, i, channels);
    return joined;
}

bool layer_source_is_guess(const struct shape_walk *walk, size_t i, int64_t channels)
{
    return walk->current.channels != channels && i > 0 && channels != walk->pooled &&
           !find_map(walk, i, channels);
}
