/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps that are cut into parts, each of which is a sample for the layers that follow.
 *
 * Attention within windows or patches of an image reshapes a map of n x k places into k samples of
 * n tokens. A summary shows [n, channels] for these layers and not that there are k times as many
 * samples. A normalisation, or the projection to query, key and value, has as many tokens as it
 * reads: if these are a square fraction of the map before, the map was cut, and sizes hold for one
 * part until a layer has another number of tokens.
 *
 * Example: LayerNorm [256, 144] after Conv2d [144, 32, 32] reads 1024 places in 4 parts of 256
 * (MobileViT, arXiv:2110.02178); Linear [49, 288] after LayerNorm [56, 56, 96] reads 64 windows of
 * 7 x 7 (Swin, arXiv:2103.14030).
 */
#include "estimator/physics/partition.h"

#include <math.h>

enum { PACKED = 3 }; /* query, key and value in one projection */

static bool is_square_number(double x)
{
    double root = floor(sqrt(x) + 0.5);
    return root > 1 && root * root == x;
}

/* Returns the channels that a layer reads if its output has as many tokens as its input; 0: it may
 * have fewer. */
static double channels_read(const struct builder *builder, const struct layer *layer)
{
    double width = (double)layer->shape[1];
    if (layer->kind == LAYER_NORM)
        return width;
    return layer->kind == LAYER_LINEAR && builder->scope.open && builder->scope.n == 0
               ? width / PACKED
               : 0;
}

/* Returns into how many parts the current tensor, a square map, is cut before the layer; 0: into
 * none. Of tokens a layer may read some. */
static double find_parts(const struct builder *builder, const struct layer *layer)
{
    double channels = channels_read(builder, layer), tokens = (double)layer->shape[0];
    if (builder->current == TAPE_NONE || builder->extents.sequence != SEQUENCE_UNKNOWN ||
        channels == 0 || tokens == 0)
        return 0;
    struct extent now = builder_extent(builder, builder->current);
    double side = now.first == channels ? now.last : now.first;
    double parts = now.elements / channels / tokens;
    bool is_map = (now.first == channels || now.last == channels) &&
                  now.elements == channels * side * side;
    return is_map && is_square_number(parts) ? parts : 0;
}

static bool is_part(const struct builder *builder, const struct layer *layer)
{
    return builder->partition.parts > 0 && layer->rank == 2 &&
           (double)layer->shape[0] == builder->partition.tokens;
}

struct extent partition_extent(
    struct builder *builder, const struct layer *layer, struct extent shown)
{
    struct partition *partition = &builder->partition;
    if (!is_part(builder, layer))
        *partition = (struct partition){.parts = layer->rank == 2 ? find_parts(builder, layer) : 0,
            .tokens = (double)layer->shape[0]};
    if (partition->parts > 0) {
        shown.elements *= partition->parts;
        shown.first *= partition->parts;
    }
    return shown;
}

double partition_parts(const struct builder *builder, const struct layer *block)
{
    return is_part(builder, block) ? builder->partition.parts : 1;
}
