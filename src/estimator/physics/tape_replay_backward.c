/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backward pass runs the operations in reverse order: gradients of inputs and weights are
 * allocated, and what was kept is freed with the last operation that needed it.
 */
#include "estimator/physics/tape_replay.h"

#include "estimator/physics/trained_part.h"

/* A gradient to which several operations add is allocated by the first of them. */
static void add_gradient(struct tape_replay *replay, int tensor)
{
    struct tensor_life *life = &replay->lives[tensor];
    if (replay->tape->tensors[tensor].is_data || replay->tape->tensors[tensor].needs_no_gradient)
        return;
    int handle = tape_replay_take(replay, tape_replay_tensor_bytes(replay, tensor));
    if (life->gradient == LIFE_NONE)
        life->gradient = handle;
    else
        tape_replay_release(replay, &handle);
}

static void release_kept(struct tape_replay *replay, int tensor, int op)
{
    struct tensor_life *root = &replay->lives[replay->lives[tensor].root];
    if (root->first_keep == op && !replay->tape->tensors[root - replay->lives].is_data)
        tape_replay_release(replay, &root->block);
}

/* Allocates the gradient of a weight: in 16 bit if the product is. Returns its block. */
static int weight_gradient(struct tape_replay *replay, size_t i)
{
    const struct op *op = &replay->tape->ops[i];
    if (op->frozen)
        return LIFE_NONE;
    int gradient = tape_replay_take(
        replay, (op->weight + op->tied) *
                    (tape_replay_casts_weights(replay, op) ? HALF_BYTES : op_weight_bytes(op)));
    tape_replay_scratch(replay, i, CONV_WEIGHT_GRADIENT);
    return gradient;
}

/* Adds two gradients of one weight: the sum is a third tensor. */
static void add_tied(struct tape_replay *replay, int *sum, int gradient)
{
    if (*sum == LIFE_NONE) {
        *sum = gradient;
        return;
    }
    int result = tape_replay_take(replay, (double)replay->allocator.blocks[gradient].size);
    tape_replay_release(replay, sum);
    tape_replay_release(replay, &gradient);
    *sum = result;
}

/* Of a divided gradient the process keeps its part. */
static void keep_part(struct tape_replay *replay, int *gradient)
{
    double share = replay->tape->division.gradients;
    if (share == 1 || *gradient == LIFE_NONE)
        return;
    int part = tape_replay_take(replay, share * (double)replay->allocator.blocks[*gradient].size);
    tape_replay_release(replay, gradient); /* all of it, where gradients are on the host */
    *gradient = part;
}

/* Turns the computed gradient into the weight's, where that was copied, and adds it to that of
 * another operation with the same weight. */
static void accumulate_gradient(
    struct tape_replay *replay, const struct op *op, struct parameter_blocks *blocks, int computed)
{
    double bytes = (op->weight + op->tied) * op_weight_bytes(op);
    int gradient = computed;
    if (op->frozen)
        return;
    if (tape_replay_copied_bytes(replay, op) > 0) {
        gradient = tape_replay_take(replay, bytes);
        tape_replay_release(replay, &computed);
    }
    if (op->tied_to != TAPE_NONE) {
        add_tied(replay, &replay->parameters[op->tied_to].tied_gradient, gradient);
        return;
    }
    blocks->weight_gradient = gradient;
    if (blocks->tied_gradient != LIFE_NONE)
        add_tied(replay, &blocks->weight_gradient, blocks->tied_gradient);
    blocks->tied_gradient = LIFE_NONE;
    keep_part(replay, &blocks->weight_gradient);
}

static void backward_op(struct tape_replay *replay, size_t i)
{
    const struct op *op = &replay->tape->ops[i];
    struct parameter_blocks *blocks = &replay->parameters[i];
    if (op->kind == LAYER_INPUT || replay->tape->tensors[op->output].needs_no_gradient)
        return;
    if (replay->lives[op->output].gradient == LIFE_NONE)
        add_gradient(replay, op->output);
    for (int k = 0; k < OP_INPUTS; k++)
        if (op->inputs[k] != TAPE_NONE)
            add_gradient(replay, op->inputs[k]);
    tape_replay_blas_workspace(replay, op, true);
    int unpacked = tape_replay_take(replay, op->unpacked);
    tape_replay_scratch(replay, i, CONV_INPUT_GRADIENT);
    tape_replay_release(replay, &unpacked);
    int computed = weight_gradient(replay, i);
    blocks->bias_gradient = tape_replay_take(
        replay, op->frozen ? 0 : op->bias * op_weight_bytes(op));
    tape_replay_release(replay, &replay->lives[op->output].gradient);
    tape_replay_forget(replay, i);
    tape_replay_release(replay, &blocks->copy);
    for (int k = 0; k < OP_INPUTS; k++)
        if (op->inputs[k] != TAPE_NONE)
            release_kept(replay, op->inputs[k], (int)i);
    release_kept(replay, op->output, (int)i);
    accumulate_gradient(replay, op, blocks, computed);
}

/*
 * Cross-entropy keeps the logarithms of the softmax in 32 bit; its gradient and that of the logits
 * are computed from them. log_softmax reads 16-bit logits without a copy, unless the model casts
 * them to 32 bit before.
 */
static void compute_loss(struct tape_replay *replay)
{
    const struct tape *tape = replay->tape;
    const struct tensor *logits = &tape->tensors[tape->n_tensors - 1];
    double bytes = logits->elements * tape->batch * SINGLE_BYTES;
    bool raises = logits->element_bytes < SINGLE_BYTES && tape->raises_logits;
    int single = raises ? tape_replay_take(replay, bytes) : LIFE_NONE;
    replay->loss = tape_replay_take(replay, bytes);
    tape_replay_release(replay, &single);
    if (tape->result != (int)tape->n_tensors - 1) /* within the loss */
        tape_replay_release(replay, &replay->lives[tape->n_tensors - 1].block);
    if (tape->releases_result)
        tape_replay_release(replay, &replay->lives[replay->lives[tape->result].root].block);
    int gradient = tape_replay_take(replay, bytes);
    single = raises ? tape_replay_take(replay, bytes) : LIFE_NONE;
    if (raises && tape->releases_result) { /* the cast comes after what it casts */
        tape_replay_release(replay, &gradient);
        tape_replay_release(replay, &replay->loss);
    }
    add_gradient(replay, (int)tape->n_tensors - 1);
    tape_replay_release(replay, &gradient);
    tape_replay_release(replay, &single);
    tape_replay_release(replay, &replay->loss);
    replay->footprint.loss = bytes;
}

void tape_replay_backward(struct tape_replay *replay)
{
    const struct tape *tape = replay->tape;
    int last_output = replay->output;
    struct tensor_life *output = &replay->lives[replay->lives[tape->result].root];
    tape_replay_release(replay, &last_output);
    replay->output = LIFE_NONE;
    if (tape->division.sends_result)
        add_gradient(replay, tape->result);
    else
        compute_loss(replay);
    for (size_t i = tape->n_ops; i-- > 0;) {
        tape_replay_repeat(replay, i);
        backward_op(replay, i);
        tape_replay_leave(replay, i);
    }
    replay->loose_gradient = tape_replay_take(
        replay, tape->loose_parameters * tape_weight_bytes_each(tape));
    keep_part(replay, &replay->loose_gradient);
    replay->output = output->block; /* a loop's variable holds it until the next step's output */
    output->block = LIFE_NONE;
}
