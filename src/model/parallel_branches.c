/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches. Modules that are branches by their names (branch_name.c) read the input of the module
 * around them, and that module puts out their channels side by side; or their sum, if all have the
 * channels that the next convolution reads:
 *
 *     (mixed): Inception(                              entry: 64 x 28 x 28
 *       (branch1x1): Conv2d(64, 32, kernel_size=1)     reads the entry: 32 x 28 x 28
 *       (branch5x5_1): Conv2d(64, 16, kernel_size=1)   reads the entry: 16 x 28 x 28
 *       (branch5x5_2): Conv2d(16, 48, ...)             reads branch5x5_1: 48 x 28 x 28
 *     )                                                puts out 32 + 48 channels
 *
 * A branch without layers passes a part of the channels, and the others read the rest (ShuffleNet).
 */
#include "model/parallel_branches.h"

#include "model/branch_name.h"
#include "model/module_tree.h"

/* A branch without another in its module: a function passes the other channels. */
static bool is_only_branch(const struct model *model, size_t i)
{
    const struct layer *layers = model->layers;
    if (branch_role_of(layers[i].name, (struct span){0}) == BRANCH_NONE)
        return false;
    for (size_t k = i + 1; k < model->n_layers && layers[k].depth >= layers[i].depth; k++)
        if (layers[k].depth == layers[i].depth &&
            branch_role_of(layers[k].name, layers[i].name) == BRANCH_BEGINS)
            return false;
    return true;
}

/* Returns the channels that the first convolution after a module reads; 0: there is none, or an
 * empty branch before it passes a part of them. */
static int64_t channels_read_after(const struct model *model, size_t module)
{
    size_t i = module_end(model, module);
    size_t end = model->n_layers - i > SHAPE_LOOK_AHEAD ? i + SHAPE_LOOK_AHEAD : model->n_layers;
    for (; i < end && !module_is_empty(model, i) && !is_only_branch(model, i); i++)
        if (model->layers[i].kind == LAYER_CONV)
            return model->layers[i].in_size;
    return 0;
}

/* Begins a branch of a module, or the second part of a fork. */
static void begin_branch(
    struct shape_walk *walk, struct open_module *module, size_t i, enum branch_role role)
{
    if (module->n_branches++ > 0 && !module->is_empty)
        module->channels += walk->current.channels;
    walk->current = role == BRANCH_FORKS ? module->before : module->entry;
    int64_t read = module_channels_read(walk->model, i);
    if (module->divides && read > 0 && read < walk->current.channels)
        walk->current.channels = read; /* a part of them */
    module->is_empty = module_is_empty(walk->model, i);
    module->divides |= module->is_empty;
}

void parallel_branches_enter(struct shape_walk *walk, size_t i)
{
    struct span name = walk->model->layers[i].name;
    struct open_module *module = shape_walk_parent(walk, i);
    enum branch_role role = module ? branch_role_of(name, module->branch) : BRANCH_NONE;
    if (role == BRANCH_NONE)
        return;
    if (role != BRANCH_GOES_ON)
        begin_branch(walk, module, i, role);
    module->branch = name;
    module->before = walk->current;
}

/* Tests whether a module adds its branches: all have equally many channels, and the next layer
 * reads no more. */
static bool adds_branches(const struct shape_walk *walk, const struct open_module *module)
{
    int64_t channels = walk->current.channels;
    return !module->divides && module->channels == (module->n_branches - 1) * channels &&
           channels_read_after(walk->model, module->layer) == channels;
}

/* Puts the branches of a module together. Returns the channels with those of its input, as its
 * first convolution reads it, since a function may have pooled it and put it beside them; 0: too
 * many. */
static int64_t join_branches(struct shape_walk *walk, const struct open_module *module)
{
    struct feature_map joined = walk->current;
    int64_t read = module_channels_read(walk->model, module->layer);
    joined.channels = module->channels + (module->is_empty ? 0 : walk->current.channels);
    if (module->divides && read > 0 && read < module->entry.channels)
        joined.channels += module->entry.channels - read;
    if (!feature_map_is_sane(&joined))
        return 0;
    walk->current = joined;
    return read < INT64_MAX - joined.channels ? joined.channels + read : 0;
}

void parallel_branches_leave(struct shape_walk *walk, const struct open_module *module)
{
    bool joins = module->n_branches > 1 && !adds_branches(walk, module);
    walk->pooled = joins ? join_branches(walk, module) : 0;
}
