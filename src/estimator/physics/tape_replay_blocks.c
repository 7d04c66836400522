/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a replay, with the most that were in use. A workspace is taken and released at once. */
#include "estimator/physics/tape_replay.h"

#include "estimator/physics/allocator_replay.h"
#include "estimator/physics/trained_part.h"

int tape_replay_take(struct tape_replay *replay, double bytes)
{
    if (replay->error < 0 || bytes <= 0)
        return LIFE_NONE;
    int handle = allocator_take(&replay->allocator, allocator_request(bytes));
    if (handle < 0) {
        replay->error = handle;
        return LIFE_NONE;
    }
    replay->live += (double)replay->allocator.blocks[handle].size;
    if (replay->live > replay->footprint.live)
        replay->footprint.live = replay->live;
    return handle;
}

void tape_replay_release(struct tape_replay *replay, int *handle)
{
    if (*handle == LIFE_NONE)
        return;
    replay->live -= (double)replay->allocator.blocks[*handle].size;
    allocator_release(&replay->allocator, *handle);
    *handle = LIFE_NONE;
}

/* What keeps several maps is written in Python: it makes them one from another, by way of a map
 * that it does not keep. */
void tape_replay_keep(struct tape_replay *replay, size_t i)
{
    const struct op *op = &replay->tape->ops[i];
    int *kept = replay->parameters[i].kept;
    double batch = replay->tape->batch, left = op->kept_bytes,
           map = op->kept_map > 0 ? op->kept_map : left;
    int made = tape_replay_take(replay, op->kept_map * batch);
    for (int k = 0; k < KEPT_MOST && left > 0; k++) {
        double bytes = k + 1 < KEPT_MOST && map < left ? map : left;
        kept[k] = tape_replay_take(replay, bytes * batch);
        left -= bytes;
    }
    tape_replay_release(replay, &made);
}

void tape_replay_forget(struct tape_replay *replay, size_t i)
{
    for (int k = 0; k < KEPT_MOST; k++)
        tape_replay_release(replay, &replay->parameters[i].kept[k]);
}

void allocator_replay_workspace(
    struct allocator *allocator, double bytes, struct footprint *footprint, int *error)
{
    if (*error < 0 || bytes <= 0)
        return;
    *error = allocator_touch(allocator, allocator_request(bytes));
    if (bytes > footprint->largest_workspace)
        footprint->largest_workspace = bytes;
}

static void use_workspace(struct tape_replay *replay, double bytes)
{
    allocator_replay_workspace(&replay->allocator, bytes, &replay->footprint, &replay->error);
}

double tape_replay_tensor_bytes(const struct tape_replay *replay, int tensor)
{
    const struct tensor *t = &replay->tape->tensors[tensor];
    return t->elements * replay->tape->batch * t->element_bytes;
}

void tape_replay_scratch(struct tape_replay *replay, size_t i, enum conv_pass pass)
{
    const struct op *op = &replay->tape->ops[i];
    use_workspace(replay, replay->parameters[i].workspaces[pass]);
    use_workspace(replay, op->scratch + op->sample_scratch * replay->tape->batch);
}

void tape_replay_blas_workspace(struct tape_replay *replay, const struct op *op, bool backward)
{
    bool product = op->kind == LAYER_LINEAR || op->kind == LAYER_RECURRENT ||
                   op->kind == LAYER_ATTENTION;
    if (!product || replay->has_workspace[backward])
        return;
    replay->has_workspace[backward] = true;
    tape_replay_take(replay, replay->workspace_bytes);
}

bool tape_replay_casts_weights(const struct tape_replay *replay, const struct op *op)
{
    return replay->tape->autocast && op_weight_bytes(op) == SINGLE_BYTES &&
           (op->kind == LAYER_CONV || op->kind == LAYER_LINEAR || op->kind == LAYER_RECURRENT);
}

double tape_replay_copied_bytes(const struct tape_replay *replay, const struct op *op)
{
    if (tape_replay_casts_weights(replay, op))
        return HALF_BYTES;
    return op->standardizes ? SINGLE_BYTES : 0;
}
