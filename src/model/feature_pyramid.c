/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feature pyramids. A detector reads maps of several sizes from its backbone and makes maps of one
 * number of channels from them, with a list of convolutions:
 *
 *     (inner_blocks): ModuleList(              the members do not follow one another:
 *       (0): Conv2d(512, 256, kernel_size=1)   reads the backbone's last map of 512 channels
 *       (1): Conv2d(1024, 256, kernel_size=1)  reads its last map of 1024 channels
 *     )
 *     (layer_blocks): ModuleList(              a list beside one of as many members reads these:
 *       (0): Conv2d(256, 256, kernel_size=3)   reads what (0) above has made
 *       (1): Conv2d(256, 256, kernel_size=3)   reads what (1) above has made
 *     )
 *
 * What comes next reads all of them, taken for the largest.
 */
#include "model/feature_pyramid.h"

#include "model/module_tree.h"

/* Returns the only convolution in a member of a list, or the member itself; NULL: it is more. */
static const struct layer *only_convolution(const struct model *model, size_t member, size_t end)
{
    const struct layer *found = NULL;
    for (size_t i = member; i < end; i++) {
        const struct layer *layer = &model->layers[i];
        bool is_simple = !layer->leaf || layer->kind == LAYER_CONV || layer->kind == LAYER_NORM ||
                         layer->kind == LAYER_ACTIVATION;
        if (!is_simple || (found && layer->kind == LAYER_CONV))
            return NULL;
        found = layer->kind == LAYER_CONV ? layer : found;
    }
    return found;
}

/* Tests whether a module is a list of convolutions that all put out as many channels. */
static bool is_pyramid(const struct model *model, size_t list)
{
    size_t end = module_end(model, list), members = 0, next;
    int64_t channels = 0;
    if (!span_is(model->layers[list].type, "ModuleList"))
        return false;
    for (size_t member = list + 1; member < end; member = next) {
        next = module_end(model, member);
        const struct layer *convolution = only_convolution(model, member, next);
        if (!convolution || (channels > 0 && convolution->out_size != channels))
            return false;
        channels = convolution->out_size;
        members++;
    }
    return members > 1;
}

static size_t count_members(const struct model *model, size_t list)
{
    size_t members = 0, end = module_end(model, list);
    for (size_t member = list + 1; member < end; member = module_end(model, member))
        members++;
    return members;
}

/* Tests whether list `other` stands directly in front of a list and has as many members. */
static bool is_beside(const struct model *model, size_t other, size_t list)
{
    return model->layers[other].depth == model->layers[list].depth &&
           module_end(model, other) == list &&
           count_members(model, other) == count_members(model, list);
}

void feature_pyramid_enter(struct shape_walk *walk, struct open_module *list)
{
    list->is_pyramid = is_pyramid(walk->model, list->layer);
    if (list->is_pyramid && walk->pyramid > 0 && is_beside(walk->model, walk->pyramid, list->layer))
        list->beside = walk->pyramid + 1;
}

void feature_pyramid_enter_member(struct shape_walk *walk, size_t i)
{
    struct open_module *list = shape_walk_parent(walk, i);
    if (!list || list->beside == 0)
        return;
    if (walk->made[list->beside].channels > 0)
        walk->current = walk->made[list->beside];
    list->beside = module_end(walk->model, list->beside);
}

void feature_pyramid_leave_member(struct shape_walk *walk, size_t i)
{
    struct open_module *list = shape_walk_innermost(walk);
    if (list && list->is_pyramid && walk->made[i].channels > 0 &&
        feature_map_places(&walk->made[i]) > feature_map_places(&list->largest))
        list->largest = walk->made[i];
}

void feature_pyramid_leave(struct shape_walk *walk, const struct open_module *module)
{
    const struct layer *layers = walk->model->layers;
    if (module->is_pyramid) {
        walk->current = module->largest.channels > 0 ? module->largest : walk->current;
        walk->pyramid = module->layer;
        walk->guessed = walk->guessed > 0 ? walk->guessed : module->layer;
    } else if (walk->pyramid > module->layer &&
               layers[walk->pyramid].depth == layers[module->layer].depth + 1) {
        walk->current = walk->made[walk->pyramid];
    }
}
