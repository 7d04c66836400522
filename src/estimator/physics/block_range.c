/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds repeated blocks. A block is repeated if a block of the same type stands before or after it
 * in the same list. Only the outermost count: a layer of a transformer, not the two norms in it. A
 * container (ModuleList, Sequential) is no block.
 *
 *     Net
 *       Embedding                 no block
 *       ModuleList
 *         Layer (attention, ...)  range 0
 *         Layer (attention, ...)  range 1
 *       Linear                    no block
 *
 * An operation that no layer shows (an addition) belongs to the block of the operation before it.
 */
#include "estimator/physics/block_range.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/span_parts.h"
#include "base/text.h"

enum { NO_BLOCK = -1 };

static bool is_container(const struct layer *layer)
{
    static const char *const types[] = {"ModuleList", "Sequential", "ModuleDict"};
    return span_place(layer->type, types, ARRAY_SIZE(types)) >= 0;
}

static bool is_block(const struct layer *layer)
{
    return !layer->leaf && !is_container(layer) && layer->depth >= 0 &&
           layer->depth <= MODEL_DEPTH_MAX;
}

/* Finds the next layer at the depth of layer `i`, in the same list. Returns its index, or n_layers.
 */
static size_t next_beside(const struct model *model, size_t i)
{
    size_t k = i + 1;
    while (k < model->n_layers && model->layers[k].depth > model->layers[i].depth)
        k++;
    bool is_beside = k < model->n_layers && model->layers[k].depth == model->layers[i].depth;
    return is_beside ? k : model->n_layers;
}

/* Marks the layers of each outermost repeated block with the block's index. */
static void mark_blocks(const struct model *model, int *marks)
{
    for (size_t i = 0; i < model->n_layers; i++)
        marks[i] = NO_BLOCK;
    for (size_t i = 0; i < model->n_layers; i++) {
        if (marks[i] != NO_BLOCK || !is_block(&model->layers[i]))
            continue;
        for (size_t k = i, next = next_beside(model, k); next < model->n_layers;
             k = next, next = next_beside(model, k)) {
            if (!is_block(&model->layers[next]) ||
                !span_equals(model->layers[k].type, model->layers[next].type))
                break;
            size_t end = next_beside(model, next);
            for (size_t m = k; m < next; m++)
                marks[m] = (int)k;
            for (size_t m = next;
                 m < end && (m == next || model->layers[m].depth > model->layers[next].depth); m++)
                marks[m] = (int)next;
        }
    }
}

int block_ranges_find(
    const struct tape *tape, const struct model *model, struct block_ranges *ret_ranges)
{
    *ret_ranges = (struct block_ranges){0};
    int *marks = malloc((model->n_layers + 1) * sizeof *marks), last = NO_BLOCK, r = 0;
    if (!marks)
        return -ENOMEM;
    mark_blocks(model, marks);
    for (size_t i = 0; r == 0 && i < tape->n_ops; i++) {
        int layer = tape->ops[i].layer, mark = layer == TAPE_NONE ? last : marks[layer];
        if (mark != NO_BLOCK && mark != last)
            r = ARRAY_APPEND(ret_ranges->ranges, ret_ranges->n, ret_ranges->capacity,
                (struct block_range){i, i});
        if (r == 0 && mark != NO_BLOCK)
            ret_ranges->ranges[ret_ranges->n - 1].end = i + 1;
        last = mark;
    }
    free(marks);
    if (r < 0)
        block_ranges_fini(ret_ranges);
    return r < 0 ? -ENOMEM : 0;
}

void block_ranges_fini(struct block_ranges *ranges)
{
    free(ranges->ranges);
    *ranges = (struct block_ranges){0};
}

const struct block_range *block_ranges_at(const struct block_ranges *ranges, size_t op)
{
    for (size_t i = 0; i < ranges->n; i++)
        if (op >= ranges->ranges[i].begin && op < ranges->ranges[i].end)
            return &ranges->ranges[i];
    return NULL;
}
