/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays two steps of a training loop through the caching allocator.
 *
 * The loop is zero_grad, forward, loss, backward, optimizer step. Weights are allocated first. In
 * the forward pass each operation allocates its output, what autograd keeps for it and, while it
 * runs, its kernel's workspace. An input is freed after its last reader, unless a later gradient
 * needs it. The backward pass runs the operations in reverse order: gradients of inputs and weights
 * are allocated, and what was kept is freed with the last operation that needed it. The first step
 * allocates the optimizer's states. The second step finds the holes between blocks that the first
 * left, and decides the peak.
 *
 * Example: Linear(1024, 1024) without bias at batch 512, fp32, SGD, on an A100. The weight takes 4
 * MiB, each map 2 MiB, cuBLAS's workspaces 8.125 MiB for each of two threads. In use in the second
 * step, workspaces aside:
 *
 *     forward     weight 4, input 2, output 2, and the first step's output 2         10 MiB
 *     loss        weight 4, input 2, output 2, log-softmax 2, two gradients of 2     14 MiB
 *     backward    weight 4, input 2, output 2 and its gradient 2, weight gradient 4  14 MiB
 *
 * So 14 + 16.25 = 30.25 MiB are in use at the peak. Each request is below 10 MiB, so all are cut
 * from segments of 20 MiB: the allocator holds two of them, 40 MiB.
 */
#include "estimator/physics/allocator_replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "estimator/physics/op_workspace.h"
#include "estimator/physics/tape_replay.h"
#include "estimator/physics/trained_part.h"

/* Chosen: the second step differs from the first, since the optimizer's states are there and blocks
 * are free in other places; a third changes nothing for a tape. */
enum { STEPS = 2 };

enum { UNITS_MOST = 3 }; /* of FSDP at a time: this unit, the next one, the gradient */

/* DDP copies the gradients into buckets of whole tensors, in the order of the backward pass. */
static void take_buckets(struct tape_replay *replay)
{
    const struct tape *tape = replay->tape;
    double bytes = tape->loose_parameters * tape_weight_bytes_each(tape);
    for (size_t i = tape->n_ops; i-- > 0;) {
        if (!tape->ops[i].frozen)
            bytes += (tape->ops[i].weight + tape->ops[i].bias) * op_weight_bytes(&tape->ops[i]);
        if (bytes < DIVISION_BUCKET_BYTES)
            continue;
        tape_replay_take(replay, bytes);
        bytes = 0;
    }
    tape_replay_take(replay, bytes);
}

/* FSDP holds a unit's parameters whole while it computes with them, and gathers the next unit
 * meanwhile; in the backward pass the whole gradient of a unit is there, too. Takes their blocks.
 * Returns how many. */
static int gather_units(
    struct tape_replay *replay, bool backward, int ret_blocks[static UNITS_MOST])
{
    const struct division *division = &replay->tape->division;
    int n = 1 + division->gathers_next + backward;
    for (int i = 0; i < n; i++)
        ret_blocks[i] = tape_replay_take(
            replay, division->unit * tape_weight_bytes_each(replay->tape));
    return n;
}

static void release_units(struct tape_replay *replay, int blocks[static UNITS_MOST], int n)
{
    for (int i = 0; i < n; i++)
        tape_replay_release(replay, &blocks[i]);
}

static void set_up(struct tape_replay *replay, const struct gpu_traits *gpu)
{
    const struct tape *tape = replay->tape;
    for (size_t i = 0; i < tape->n_ops; i++) {
        const struct op *op = &tape->ops[i];
        struct parameter_blocks *blocks = &replay->parameters[i];
        memset(blocks, 0xff, sizeof *blocks);
        for (int pass = 0; pass < CONV_PASSES; pass++)
            blocks->workspaces[pass] = op_workspace(tape, i, pass, replay->variant);
        double bytes = op_weight_bytes(op) * tape->division.weights;
        blocks->weight = tape_replay_take(replay, op->weight * bytes);
        blocks->bias = tape_replay_take(replay, op->bias * bytes);
        blocks->buffers = tape_replay_take(replay, op->buffers * tape_weight_bytes_each(tape));
    }
    replay->loose = tape_replay_take(
        replay, tape->loose_parameters * tape_weight_bytes_each(tape) * tape->division.weights);
    tape_replay_take(replay, tape->loose_frozen_bytes * tape->division.weights);
    if (tape->division.buckets)
        take_buckets(replay);
    replay->loose_gradient = LIFE_NONE;
    replay->output = replay->loss = LIFE_NONE;
    replay->workspace_bytes = tape->multiplies ? (double)gpu->workspace_bytes : 0;
    double trained = tape_trained_bytes(tape);
    replay->footprint.weights = tape_weight_bytes(tape) * tape->division.weights;
    replay->footprint.gradients = trained * tape->division.gradients;
    replay->footprint.states = trained * tape->division.states * replay->optimizer->states;
}

static void zero_grad(struct tape_replay *replay)
{
    for (size_t i = 0; i < replay->tape->n_ops; i++) {
        tape_replay_release(replay, &replay->parameters[i].weight_gradient);
        tape_replay_release(replay, &replay->parameters[i].bias_gradient);
    }
    tape_replay_release(replay, &replay->loose_gradient);
}

static void run_forward(struct tape_replay *replay)
{
    for (size_t i = 0; i < replay->tape->n_ops; i++) {
        tape_replay_forward(replay, i);
        tape_replay_drop(replay, i);
    }
}

static void take_states(struct tape_replay *replay)
{
    double share = replay->tape->division.states;
    for (int s = 0; s < replay->optimizer->states; s++) {
        for (size_t i = 0; i < replay->tape->n_ops; i++) {
            const struct op *op = &replay->tape->ops[i];
            double bytes = op_weight_bytes(op) * share;
            tape_replay_take(replay, op->frozen ? 0 : op->weight * bytes);
            tape_replay_take(replay, op->frozen ? 0 : op->bias * bytes);
        }
        tape_replay_take(
            replay, replay->tape->loose_parameters * tape_weight_bytes_each(replay->tape) * share);
    }
}

/* foreach: the temporaries of all parameters live at once. Returns how many they are. */
static size_t take_temporaries(struct tape_replay *replay, int *ret_temporaries)
{
    size_t n = 0;
    double share = replay->tape->division.states;
    if (!replay->optimizer->temporaries)
        return 0;
    for (size_t i = 0; i < replay->tape->n_ops; i++) {
        const struct op *op = &replay->tape->ops[i];
        if (op->frozen)
            continue;
        double bytes = op_weight_bytes(op) * share;
        ret_temporaries[n++] = tape_replay_take(replay, op->weight * bytes);
        ret_temporaries[n++] = tape_replay_take(replay, op->bias * bytes);
    }
    ret_temporaries[n++] = tape_replay_take(
        replay, replay->tape->loose_parameters * tape_weight_bytes_each(replay->tape) * share);
    return n;
}

/* After the last step nothing is taken any more, so that nothing needs to be free. */
static void step_optimizer(struct tape_replay *replay, int *temporaries, bool is_last)
{
    size_t n = take_temporaries(replay, temporaries);
    while (!is_last && n > 0)
        tape_replay_release(replay, &temporaries[--n]);
}

static void note_saved(struct tape_replay *replay)
{
    const struct tape *tape = replay->tape;
    double saved = 0, largest = 0;
    for (size_t t = 0; t < tape->n_tensors; t++) {
        double bytes = tape_replay_tensor_bytes(replay, (int)t);
        bool counts = replay->lives[t].root == (int)t && !tape->tensors[t].is_data;
        saved += counts && replay->lives[t].first_keep != LIFE_NONE ? bytes : 0;
        largest = bytes > largest ? bytes : largest;
    }
    for (size_t i = 0; i < tape->n_ops; i++)
        saved += tape->ops[i].kept_bytes * tape->batch;
    replay->footprint.saved = saved;
    replay->footprint.largest_map = largest;
}

static void replay_steps(struct tape_replay *replay, int *temporaries)
{
    for (int i = 0; i < STEPS && replay->error == 0; i++) {
        int units[UNITS_MOST];
        zero_grad(replay);
        int n = gather_units(replay, false, units);
        run_forward(replay);
        release_units(replay, units, n);
        n = gather_units(replay, true, units);
        tape_replay_backward(replay);
        release_units(replay, units, n);
        if (i == 0)
            take_states(replay);
        step_optimizer(replay, temporaries, i + 1 == STEPS);
    }
}

int allocator_replay_tape(const struct tape *tape, const struct optimizer_traits *optimizer,
    const struct gpu_traits *gpu, uint32_t variant, struct fault *fault,
    struct footprint *ret_footprint)
{
    struct tape_replay replay = {.tape = tape, .optimizer = optimizer, .variant = variant};
    int *temporaries = malloc((2 * tape->n_ops + 1) * sizeof *temporaries);
    replay.parameters = malloc(tape->n_ops * sizeof *replay.parameters);
    replay.lives = malloc(tape->n_tensors * sizeof *replay.lives);
    allocator_init(&replay.allocator);
    if (temporaries && replay.parameters && replay.lives) {
        tensor_lives_find(tape, replay.lives);
        note_saved(&replay);
        set_up(&replay, gpu);
        replay_steps(&replay, temporaries);
    } else {
        replay.error = -ENOMEM;
    }
    replay.footprint.reserved = (double)replay.allocator.reserved;
    replay.footprint.active = (double)replay.allocator.active_peak;
    *ret_footprint = replay.footprint;
    allocator_fini(&replay.allocator);
    free(temporaries);
    free(replay.parameters);
    free(replay.lives);
    if (replay.error < 0)
        return fault_set(fault, -replay.error,
            replay.error == -ENOMEM ? "out of memory" : "more than any GPU holds");
    return 0;
}
