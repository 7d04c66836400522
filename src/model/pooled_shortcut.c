/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block whose shortcut comes first, and shrinks the map as its other part does (MaxViT):
 *
 *     (proj): Sequential(AvgPool2d(kernel_size=3, stride=2), Conv2d(64, 64, kernel_size=1))
 *     (layers): Sequential(..., Conv2d(256, 256, kernel_size=3, stride=2), ...)
 *
 * Both read what the block reads, since their results are added. Between the two stands at most
 * what changes no map.
 */
#include "model/pooled_shortcut.h"

#include "model/module_tree.h"

/* Tests whether module `i` only pools and changes the channels. Returns the stride of the pool. */
static bool is_pooled_shortcut(const struct model *model, size_t i, int64_t *ret_stride)
{
    const struct layer *layers = model->layers;
    struct window window = {.stride = {1}};
    int pools = 0, convolutions = 0;
    for (size_t k = i + 1; k < model->n_layers && layers[k].depth > layers[i].depth; k++) {
        if (k > i + SHAPE_LOOK_AHEAD)
            return false;
        bool is_pool = layers[k].kind == LAYER_POOL,
             is_pointwise = layers[k].kind == LAYER_CONV && layers[k].kernel_size == 1;
        if (!is_pool && !is_pointwise && layers[k].kind != LAYER_NORM)
            return false;
        pools += is_pool && arguments_window(&layers[k], 1, &window);
        convolutions += is_pointwise;
    }
    *ret_stride = window.stride[0];
    return pools == 1 && convolutions == 1;
}

/* Tests whether one of the convolutions in a module has this stride. */
static bool has_stride(const struct model *model, size_t module, int64_t stride)
{
    const struct layer *layers = model->layers;
    struct window window;
    for (size_t k = module + 1; k < model->n_layers && layers[k].depth > layers[module].depth &&
                                k < module + SHAPE_LOOK_AHEAD;
         k++)
        if (layers[k].kind == LAYER_CONV && arguments_window(&layers[k], 1, &window) &&
            window.stride[0] == stride)
            return true;
    return false;
}

/* Tests whether all rows of a block between its first part and row `i` change no map. */
static bool is_second_part(const struct model *model, size_t block, size_t i)
{
    const struct layer *layers = model->layers;
    if (i == block + 1 || i > block + SHAPE_LOOK_BACK)
        return false;
    for (size_t k = block + 2; k < i; k++)
        if (layers[k].depth == layers[i].depth && layers[k].kind != LAYER_RESHAPE &&
            layers[k].kind != LAYER_DROPOUT)
            return false;
    return true;
}

void pooled_shortcut_enter_beside(struct shape_walk *walk, size_t i)
{
    const struct model *model = walk->model;
    const struct open_module *block = shape_walk_parent(walk, i);
    int64_t stride;
    if (block && is_second_part(model, block->layer, i) &&
        is_pooled_shortcut(model, block->layer + 1, &stride) &&
        module_channels_read(model, i) == block->entry.channels && stride > 1 &&
        has_stride(model, i, stride))
        walk->current = block->entry;
}
