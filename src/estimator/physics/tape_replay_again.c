/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradient checkpointing (arXiv:1604.06174), of each repeated block, as transformers'
 * gradient_checkpointing_enable and torch.utils.checkpoint have it. Of a block the forward pass
 * keeps the inputs alone. Before its backward pass the block runs forward once more, and then what
 * autograd keeps of it is there:
 *
 *     forward     block 0: x -> y, keeps x      block 1: y -> z, keeps y
 *     backward    block 1 again, its gradients, y is free      block 0 again, ...
 *
 * So at most one block's kept tensors are there at a time. A block without a gradient does not run
 * again.
 */
#include "estimator/physics/tape_replay.h"

/* Returns the block that ends with operation `last`, or NULL. They are in order. */
static const struct block_range *range_that(
    const struct tape *tape, size_t i, bool (*is_it)(const struct block_range *range, size_t i))
{
    size_t low = 0, high = tape->n_recomputed;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tape->recomputed[middle].end <= i)
            low = middle + 1;
        else
            high = middle;
    }
    return low < tape->n_recomputed && is_it(&tape->recomputed[low], i) ? &tape->recomputed[low]
                                                                        : NULL;
}

static bool is_last(const struct block_range *range, size_t i)
{
    return range->end == i + 1;
}

static bool is_first(const struct block_range *range, size_t i)
{
    return range->begin == i;
}

static bool is_within(const struct block_range *range, int op)
{
    return op >= (int)range->begin && op < (int)range->end;
}

static bool has_gradient(const struct tape *tape, const struct block_range *range)
{
    for (size_t i = range->begin; i < range->end; i++)
        if (!tape->tensors[tape->ops[i].output].needs_no_gradient)
            return true;
    return false;
}

static struct tensor_life *root_of(const struct tape_replay *replay, int tensor)
{
    return &replay->lives[replay->lives[tensor].root];
}

/* Is the tensor read after the block, or by the loss? */
static bool is_result(const struct tape_replay *replay, const struct block_range *range, int tensor)
{
    const struct tape *tape = replay->tape;
    const struct tensor_life *root = root_of(replay, tensor);
    return root->last_use >= (int)range->end || root == root_of(replay, tape->result) ||
           root == root_of(replay, (int)tape->n_tensors - 1);
}

/* Releases the tensors made in the block, whose results stay; of a second run they are still there,
 * or no longer needed. */
static void release_made(struct tape_replay *replay, const struct block_range *range)
{
    for (size_t i = range->begin; i < range->end; i++) {
        int tensor = replay->tape->ops[i].output;
        tape_replay_forget(replay, i);
        tape_replay_release(replay, &replay->parameters[i].copy);
        if (!is_result(replay, range, tensor))
            tape_replay_release(replay, &root_of(replay, tensor)->block);
    }
}

void tape_replay_drop(struct tape_replay *replay, size_t i)
{
    const struct block_range *range = range_that(replay->tape, i, is_last);
    if (range && has_gradient(replay->tape, range))
        release_made(replay, range);
}

/* A result whose first run is still needed is not made twice. One that only the block's own
 * gradients need is made by the second run. */
static void release_results(struct tape_replay *replay, const struct block_range *range)
{
    for (size_t i = range->begin; i < range->end; i++) {
        struct tensor_life *root = root_of(replay, replay->tape->ops[i].output);
        if (is_result(replay, range, replay->tape->ops[i].output) &&
            !is_within(range, root->first_keep))
            tape_replay_release(replay, &root->block);
    }
}

void tape_replay_repeat(struct tape_replay *replay, size_t i)
{
    const struct block_range *range = range_that(replay->tape, i, is_last);
    if (!range || !has_gradient(replay->tape, range))
        return;
    release_results(replay, range);
    for (size_t k = range->begin; k < range->end; k++) {
        struct tensor_life *root = root_of(replay, replay->tape->ops[k].output);
        if (!replay->tape->ops[k].in_place)
            tape_replay_release(replay, &root->block);
        tape_replay_forward(replay, k);
    }
    release_results(replay, range);
}

void tape_replay_leave(struct tape_replay *replay, size_t i)
{
    const struct block_range *range = range_that(replay->tape, i, is_first);
    if (!range)
        return;
    for (size_t k = range->begin; k < range->end; k++)
        for (int n = 0; n < OP_INPUTS; n++) {
            int tensor = replay->tape->ops[k].inputs[n];
            if (tensor == TAPE_NONE || replay->tape->tensors[tensor].is_data)
                continue;
            struct tensor_life *root = root_of(replay, tensor);
            if (root->first_keep == (int)range->begin)
                tape_replay_release(replay, &root->block);
        }
}
