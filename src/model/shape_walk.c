/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules ask about the modules that are open around the current layer. */
#include "model/shape_walk.h"

#include "base/span_parts.h"

struct open_module *shape_walk_innermost(struct shape_walk *walk)
{
    return walk->n_open > 0 ? &walk->open[walk->n_open - 1] : NULL;
}

struct open_module *shape_walk_parent(struct shape_walk *walk, size_t i)
{
    const struct layer *layers = walk->model->layers;
    struct open_module *module = shape_walk_innermost(walk);
    return module && layers[i].depth == layers[module->layer].depth + 1 ? module : NULL;
}

const struct open_module *shape_walk_attention(const struct shape_walk *walk)
{
    for (int i = walk->n_open - 1; i >= 0; i--)
        if (layer_is_attention(&walk->model->layers[walk->open[i].layer]))
            return &walk->open[i];
    return NULL;
}

bool layer_is_attention(const struct layer *layer)
{
    return span_find_text(layer->type, "Attention") < layer->type.size;
}
