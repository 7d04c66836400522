/* SPDX-License-Identifier: Apache-2.0 */
/* One operation of the forward pass: takes its output, what autograd keeps for it and its
 * workspace, and releases the inputs that nothing needs any more. */
#include "estimator/physics/tape_replay.h"

/* Frees a root that no further operation reads. Tensors that backward needs, and the output,
 * stay. */
static void release_unused(struct tape_replay *replay, int tensor, int op)
{
    struct tensor_life *root = &replay->lives[replay->lives[tensor].root];
    const struct tensor_life *lives = replay->lives;
    bool is_output = lives[tensor].root == lives[replay->tape->n_tensors - 1].root ||
                     lives[tensor].root == lives[replay->tape->result].root;
    if (replay->tape->tensors[root - replay->lives].is_data)
        return;
    if (root->last_use == op && root->first_keep == LIFE_NONE && !is_output)
        tape_replay_release(replay, &root->block);
}

/* The loop's variable holds the last batch until the next one is allocated. */
static void make_tensor(struct tape_replay *replay, int tensor)
{
    struct tensor_life *life = &replay->lives[tensor];
    int last = life->block;
    life->block = tape_replay_take(replay, tape_replay_tensor_bytes(replay, tensor));
    if (replay->tape->tensors[tensor].is_data)
        tape_replay_release(replay, &last);
}

void tape_replay_forward(struct tape_replay *replay, size_t i)
{
    const struct tape *tape = replay->tape;
    const struct op *op = &tape->ops[i];
    struct parameter_blocks *blocks = &replay->parameters[i];
    blocks->copy = tape_replay_take(
        replay, (op->weight + op->tied) * tape_replay_copied_bytes(replay, op));
    if (!op->in_place)
        make_tensor(replay, op->output);
    tape_replay_blas_workspace(replay, op, false);
    tape_replay_keep(replay, i);
    int unpacked = tape_replay_take(replay, op->unpacked);
    tape_replay_scratch(replay, i, CONV_FORWARD);
    tape_replay_release(replay, &unpacked);
    if (tape->tensors[op->output].needs_no_gradient)
        tape_replay_release(replay, &blocks->copy);
    for (int k = 0; k < OP_INPUTS; k++)
        if (op->inputs[k] != TAPE_NONE)
            release_unused(replay, op->inputs[k], (int)i);
    release_unused(replay, op->output, (int)i);
}
