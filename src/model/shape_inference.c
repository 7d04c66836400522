/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goes through the layers in the order in which they are printed and keeps the current map. Each
 * leaf makes a new one of it (layer_shape.c). A row that begins or ends may replace it, since a
 * print shows which modules contain which, not which of them read the same map:
 *
 *     a row begins     a branch of its module reads what the module reads (parallel_branches.c);
 *                      so does the part beside a shortcut (pooled_shortcut.c);
 *                      a member of a list reads a map made before (feature_pyramid.c)
 *     a module begins  one that makes a factor for each channel reads one place
 *     a module ends    one that scales its input, or attends, leaves its size; branches are joined;
 *                      a layer with an adapter has the layer's size;
 *                      a list puts out its largest map
 *
 * What a layer reads whose channels differ from the current map's is found in layer_source.c.
 */
#include "model/shape_inference.h"

#include "model/feature_pyramid.h"
#include "model/layer_shape.h"
#include "model/module_tree.h"
#include "model/parallel_branches.h"
#include "model/pooled_shortcut.h"

static void enter_module(struct shape_walk *walk, size_t i)
{
    if (walk->n_open == MODEL_DEPTH_MAX)
        return;
    struct open_module *module = &walk->open[walk->n_open++];
    *module = (struct open_module){.layer = i, .entry = walk->current};
    module_is_adapted(walk->model, i, &module->adapter);
    feature_pyramid_enter(walk, module);
    if (module_is_gate(walk->model, i))
        for (int k = 0; k < walk->current.rank; k++)
            walk->current.places[k] = 1;
}

/* Tests whether a module made one number for each channel of its input, which these scale. */
static bool scales_input(const struct shape_walk *walk, const struct open_module *module)
{
    return feature_map_is_vector(&walk->current) && !feature_map_is_vector(&module->entry) &&
           walk->current.rank > 0 && walk->current.channels == module->entry.channels;
}

/* Its result is added to that layer's. */
static void leave_adapted(struct shape_walk *walk, const struct open_module *module)
{
    const struct feature_map *made = &walk->made[module->layer + 1];
    if (module->adapter && made->channels > 0)
        walk->current = *made;
}

static void leave_module(struct shape_walk *walk, const struct open_module *module)
{
    if (scales_input(walk, module) || layer_is_attention(&walk->model->layers[module->layer]))
        walk->current = module->entry;
    leave_adapted(walk, module);
    parallel_branches_leave(walk, module);
    feature_pyramid_leave(walk, module);
    walk->made[module->layer] = walk->current;
    feature_pyramid_leave_member(walk, module->layer);
    walk->ended = module->layer;
    walk->ended_at = walk->n_leaves;
}

/* Leaves all modules that a row of this depth is not in. */
static void leave_modules(struct shape_walk *walk, int depth)
{
    const struct layer *layers = walk->model->layers;
    while (walk->n_open > 0 && layers[walk->open[walk->n_open - 1].layer].depth >= depth)
        leave_module(walk, &walk->open[--walk->n_open]);
}

/* The layers inside nn.MultiheadAttention are used as functions: they get no shape. */
static bool is_used_as_function(const struct shape_walk *walk)
{
    const struct open_module *attention = shape_walk_attention(walk);
    return attention && walk->model->layers[attention->layer].kind == LAYER_ATTENTION;
}

/* An adapter reads what the layer beside it reads. */
static void enter_adapter(struct shape_walk *walk, size_t i)
{
    const struct open_module *module = shape_walk_parent(walk, i);
    if (module && i == module->adapter)
        walk->current = module->entry;
}

static void begin_row(struct shape_walk *walk, size_t i)
{
    leave_modules(walk, walk->model->layers[i].depth);
    enter_adapter(walk, i);
    parallel_branches_enter(walk, i);
    pooled_shortcut_enter_beside(walk, i);
    feature_pyramid_enter_member(walk, i);
}

void shape_inference_run(struct shape_walk *walk)
{
    const struct model *model = walk->model;
    for (size_t i = 0; i < model->n_layers; i++) {
        begin_row(walk, i);
        const struct layer *layer = &model->layers[i];
        bool opens = i + 1 < model->n_layers && model->layers[i + 1].depth > layer->depth;
        bool applies = layer->leaf && !is_used_as_function(walk);
        struct feature_map map = walk->current;
        if (opens)
            enter_module(walk, i);
        if (applies && layer_shape_apply(walk, i, &map) && feature_map_is_sane(&map))
            walk->made[i] = walk->current = map;
        if (!opens)
            feature_pyramid_leave_member(walk, i);
        walk->n_leaves += layer->leaf;
    }
    leave_modules(walk, 0);
}
