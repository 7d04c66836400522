/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are in the order in which they are printed, so a module is its row and all following rows
 * that are deeper:
 *
 *     0  Block          depth 0       module 0 ends at 4
 *     1    Sequential   depth 1       module 1 ends at 3
 *     2      Conv2d     depth 2
 *     3    ReLU         depth 1
 */
#include "model/module_tree.h"

#include "model/format.h"

size_t module_end(const struct model *model, size_t module)
{
    size_t i = module + 1;
    while (i < model->n_layers && model->layers[i].depth > model->layers[module].depth)
        i++;
    return i;
}

bool module_is_empty(const struct model *model, size_t i)
{
    return model->layers[i].kind == LAYER_CONTAINER &&
           (i + 1 == model->n_layers || model->layers[i + 1].depth <= model->layers[i].depth);
}

int64_t module_channels_read(const struct model *model, size_t module)
{
    const struct layer *layers = model->layers;
    for (size_t i = module;
         i < model->n_layers && (i == module || layers[i].depth > layers[module].depth); i++)
        if (layers[i].kind == LAYER_CONV)
            return layers[i].in_size;
    return 0;
}

/* timm's has two convolutions of one tap, the first to fewer channels, and an activation. */
bool module_is_gate(const struct model *model, size_t module)
{
    const struct layer *layers = model->layers;
    int convolutions = 0;
    size_t i = module + 1;
    for (; i < model->n_layers && layers[i].depth > layers[module].depth; i++)
        if (layers[i].kind == LAYER_CONV && (layers[i].kernel_size != 1 || ++convolutions > 2))
            return false;
    return convolutions == 2 && span_ends(layers[i - 1].type, "igmoid");
}

bool module_is_adapted(const struct model *model, size_t module, size_t *ret_second)
{
    const struct layer *layers = model->layers;
    size_t end = module_end(model, module), base = module + 1, second;
    if (base >= end || layers[module].in_adapter || layers[base].in_adapter)
        return false;
    second = module_end(model, base);
    for (size_t k = second; k < end; k = module_end(model, k))
        if (layers[k].in_adapter) {
            *ret_second = second;
            return true;
        }
    return false;
}
