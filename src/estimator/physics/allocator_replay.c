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
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "estimator/physics/allocator.h"
#include "estimator/physics/workspace.h"

enum { NONE = -1 };

/* Chosen: the second step differs from the first, since the optimizer's states are there and blocks
 * are free in other places; a third changes nothing for a tape. */
enum { STEPS = 2 };

enum { WEIGHT_BYTES = 4, HALF_BYTES = 2 }; /* of fp32; of fp16 and bf16 */

enum { UNITS_MOST = 3 }; /* of FSDP at a time: this unit, the next one, the gradient */

/* The memory of one operation's parameters: block handles, -1 where there is none. And what both
 * steps need alike. */
struct parameter_blocks {
    int weight, bias, buffers;
    int weight_gradient, bias_gradient;
    int copy;          /* of the weight: cast or standardised */
    int tied_gradient; /* of a tied weight: the gradient from the other operation, until this
                        * operation's is computed */
    int states[2];
    int kept;                       /* masks, indices, ... of this step */
    double workspaces[CONV_PASSES]; /* bytes, of a convolution's kernels */
};

struct tensor_life {
    int root;       /* the tensor whose memory it is */
    int block;      /* of a root */
    int gradient;   /* block */
    int last_use;   /* of a root: last operation of the forward pass that reads or writes it */
    int first_keep; /* of a root: first operation whose gradient needs it; NONE */
};

struct replay {
    const struct tape *tape;
    const struct optimizer_traits *optimizer;
    struct allocator allocator;
    struct parameter_blocks *parameters; /* by operation */
    struct tensor_life *lives;           /* by tensor */
    double live;                         /* bytes in use but for workspaces */
    int loose, loose_gradient, loose_states[2];
    int data, output, loss;
    double workspace_bytes; /* cuBLAS's, per thread */
    bool has_workspace[2];  /* of the thread that runs forward, and of autograd's */
    int error;
    struct footprint footprint;
    uint32_t variant; /* workspace.h */
};

/* ---- blocks ---- */

static int take_block(struct replay *replay, double bytes)
{
    if (replay->error < 0 || bytes <= 0)
        return NONE;
    int handle = allocator_take(&replay->allocator, allocator_request(bytes));
    if (handle < 0) {
        replay->error = handle;
        return NONE;
    }
    replay->live += (double)replay->allocator.blocks[handle].size;
    if (replay->live > replay->footprint.live)
        replay->footprint.live = replay->live;
    return handle;
}

static void release_block(struct replay *replay, int *handle)
{
    if (*handle == NONE)
        return;
    replay->live -= (double)replay->allocator.blocks[*handle].size;
    allocator_release(&replay->allocator, *handle);
    *handle = NONE;
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

static void use_workspace(struct replay *replay, double bytes)
{
    allocator_replay_workspace(&replay->allocator, bytes, &replay->footprint, &replay->error);
}

static double tensor_bytes(const struct replay *replay, int tensor)
{
    const struct tensor *t = &replay->tape->tensors[tensor];
    return t->elements * replay->tape->batch * t->element_bytes;
}

/* Returns the groups of a convolution of `channels`, by the size of its weight. */
static double groups_of(const struct op *op, double channels, double out_channels)
{
    if (op->depthwise)
        return channels;
    double dense = channels * out_channels * op->window;
    double groups = op->weight > 0 ? round(dense / op->weight) : 1;
    bool divides = groups > 1 && fmod(channels, groups) == 0 && fmod(out_channels, groups) == 0;
    return divides ? groups : 1;
}

/* Returns the scratch memory of a convolution's kernel. */
static double conv_workspace(const struct replay *replay, const struct op *op, enum conv_pass pass)
{
    const struct tape *tape = replay->tape;
    bool has_input = op->inputs[0] != TAPE_NONE;
    if (op->kind != LAYER_CONV ||
        (pass == CONV_INPUT_GRADIENT && (!has_input || tape->tensors[op->inputs[0]].is_data)))
        return 0;
    double element = tape->autocast ? HALF_BYTES : WEIGHT_BYTES, scale = element * tape->batch;
    const struct tensor none = {0}, *out = &tape->tensors[op->output],
                        *in = has_input ? &tape->tensors[op->inputs[0]] : &none;
    double channels = op->turned ? in->last : in->first;
    struct convolution convolution = {.input = in->elements * scale,
        .output = out->elements * scale,
        .weight = op->weight * element,
        .in_channels = channels,
        .out_channels = out->first,
        .in_positions = channels > 0 ? in->elements / channels : 0,
        .out_positions = out->first > 0 ? out->elements / out->first : 0,
        .taps = op->window,
        .groups = groups_of(op, channels, out->first),
        .half = tape->autocast,
        .pass = pass};
    size_t number = (size_t)(op - tape->ops) * CONV_PASSES + pass;
    return workspace_of(&convolution) * workspace_variant(replay->variant, number);
}

static void take_scratch(struct replay *replay, size_t i, enum conv_pass pass)
{
    const struct op *op = &replay->tape->ops[i];
    use_workspace(replay, replay->parameters[i].workspaces[pass]);
    use_workspace(replay, op->scratch + op->sample_scratch * replay->tape->batch);
}

/* ---- lives ---- */

static void note_keep(struct replay *replay, int tensor, int op)
{
    struct tensor_life *root = &replay->lives[replay->lives[tensor].root];
    if (root->first_keep == NONE)
        root->first_keep = op;
}

static void note_use(struct replay *replay, int tensor, int op)
{
    replay->lives[replay->lives[tensor].root].last_use = op;
}

static void find_lives(struct replay *replay)
{
    const struct tape *tape = replay->tape;
    for (size_t t = 0; t < tape->n_tensors; t++)
        replay->lives[t] = (struct tensor_life){(int)t, NONE, NONE, NONE, NONE};
    for (size_t i = 0; i < tape->n_ops; i++) {
        const struct op *op = &tape->ops[i];
        if (op->in_place)
            replay->lives[op->output].root = replay->lives[op->inputs[0]].root;
        for (int k = 0; k < OP_INPUTS; k++) {
            if (op->inputs[k] == TAPE_NONE)
                continue;
            note_use(replay, op->inputs[k], (int)i);
            if (op->keeps_inputs)
                note_keep(replay, op->inputs[k], (int)i);
        }
        note_use(replay, op->output, (int)i);
        if (op->keeps_output)
            note_keep(replay, op->output, (int)i);
    }
}

/* ---- one step ---- */

/* DDP copies the gradients into buckets of whole tensors, in the order of the backward pass. */
static void take_buckets(struct replay *replay)
{
    const struct tape *tape = replay->tape;
    double bytes = tape->loose_parameters * WEIGHT_BYTES;
    for (size_t i = tape->n_ops; i-- > 0;) {
        bytes += (tape->ops[i].weight + tape->ops[i].bias) * WEIGHT_BYTES;
        if (bytes < DIVISION_BUCKET_BYTES)
            continue;
        take_block(replay, bytes);
        bytes = 0;
    }
    take_block(replay, bytes);
}

/* FSDP holds a unit's parameters whole while it computes with them, and gathers the next unit
 * meanwhile; in the backward pass the whole gradient of a unit is there, too. Takes their blocks.
 * Returns how many. */
static int gather_units(struct replay *replay, bool backward, int ret_blocks[static UNITS_MOST])
{
    const struct division *division = &replay->tape->division;
    int n = 1 + division->gathers_next + backward;
    for (int i = 0; i < n; i++)
        ret_blocks[i] = take_block(replay, division->unit * WEIGHT_BYTES);
    return n;
}

static void release_units(struct replay *replay, int blocks[static UNITS_MOST], int n)
{
    for (int i = 0; i < n; i++)
        release_block(replay, &blocks[i]);
}

static void set_up(struct replay *replay, const struct gpu_traits *gpu)
{
    const struct tape *tape = replay->tape;
    for (size_t i = 0; i < tape->n_ops; i++) {
        const struct op *op = &tape->ops[i];
        struct parameter_blocks *blocks = &replay->parameters[i];
        memset(blocks, 0xff, sizeof *blocks);
        for (int pass = 0; pass < CONV_PASSES; pass++)
            blocks->workspaces[pass] = conv_workspace(replay, op, pass);
        blocks->weight = take_block(replay, op->weight * WEIGHT_BYTES * tape->division.weights);
        blocks->bias = take_block(replay, op->bias * WEIGHT_BYTES * tape->division.weights);
        blocks->buffers = take_block(replay, op->buffers * WEIGHT_BYTES);
    }
    replay->loose = take_block(
        replay, tape->loose_parameters * WEIGHT_BYTES * tape->division.weights);
    if (tape->division.buckets)
        take_buckets(replay);
    replay->loose_gradient = replay->loose_states[0] = replay->loose_states[1] = NONE;
    replay->data = replay->output = replay->loss = NONE;
    replay->workspace_bytes = tape->multiplies ? (double)gpu->workspace_bytes : 0;
    double parameters = tape->parameters * WEIGHT_BYTES;
    replay->footprint.weights = parameters * tape->division.weights;
    replay->footprint.gradients = parameters * tape->division.gradients;
    replay->footprint.states = parameters * tape->division.states * replay->optimizer->states;
}

static void zero_grad(struct replay *replay)
{
    for (size_t i = 0; i < replay->tape->n_ops; i++) {
        release_block(replay, &replay->parameters[i].weight_gradient);
        release_block(replay, &replay->parameters[i].bias_gradient);
    }
    release_block(replay, &replay->loose_gradient);
}

/* Frees a root that no further operation reads. Tensors that backward needs, and the output,
 * stay. */
static void release_unused(struct replay *replay, int tensor, int op)
{
    struct tensor_life *root = &replay->lives[replay->lives[tensor].root];
    const struct tensor_life *lives = replay->lives;
    bool is_output = lives[tensor].root == lives[replay->tape->n_tensors - 1].root ||
                     lives[tensor].root == lives[replay->tape->result].root;
    if (replay->tape->tensors[root - replay->lives].is_data)
        return;
    if (root->last_use == op && root->first_keep == NONE && !is_output)
        release_block(replay, &root->block);
}

/* The loop's variable holds the last batch until the next one is allocated. */
static void make_tensor(struct replay *replay, int tensor)
{
    struct tensor_life *life = &replay->lives[tensor];
    int last = life->block;
    life->block = take_block(replay, tensor_bytes(replay, tensor));
    if (replay->tape->tensors[tensor].is_data)
        release_block(replay, &last);
}

/* At the first product of a thread cuBLAS allocates its workspace, which is never freed. */
static void use_blas_workspace(struct replay *replay, const struct op *op, bool backward)
{
    bool product = op->kind == LAYER_LINEAR || op->kind == LAYER_RECURRENT ||
                   op->kind == LAYER_ATTENTION;
    if (!product || replay->has_workspace[backward])
        return;
    replay->has_workspace[backward] = true;
    take_block(replay, replay->workspace_bytes);
}

/* Tests whether autocast casts the operation's weights, so that their gradients are 16 bit. */
static bool casts_weights(const struct replay *replay, const struct op *op)
{
    return replay->tape->autocast &&
           (op->kind == LAYER_CONV || op->kind == LAYER_LINEAR || op->kind == LAYER_RECURRENT);
}

/* Returns the bytes of an element of the weight's copy that the operation computes with and
 * autograd keeps: cast by autocast, or standardised. 0: it computes with the weight. */
static double copied_weight_bytes(const struct replay *replay, const struct op *op)
{
    if (casts_weights(replay, op))
        return HALF_BYTES;
    return op->standardizes ? WEIGHT_BYTES : 0;
}

static void run_forward(struct replay *replay)
{
    const struct tape *tape = replay->tape;
    for (size_t i = 0; i < tape->n_ops; i++) {
        const struct op *op = &tape->ops[i];
        struct parameter_blocks *blocks = &replay->parameters[i];
        blocks->copy = take_block(
            replay, (op->weight + op->tied) * copied_weight_bytes(replay, op));
        if (!op->in_place)
            make_tensor(replay, op->output);
        use_blas_workspace(replay, op, false);
        blocks->kept = take_block(replay, op->kept_bytes * tape->batch);
        take_scratch(replay, i, CONV_FORWARD);
        for (int k = 0; k < OP_INPUTS; k++)
            if (op->inputs[k] != TAPE_NONE)
                release_unused(replay, op->inputs[k], (int)i);
        release_unused(replay, op->output, (int)i);
    }
}

/* A gradient to which several operations add is allocated by the first of them. */
static void add_gradient(struct replay *replay, int tensor)
{
    struct tensor_life *life = &replay->lives[tensor];
    if (replay->tape->tensors[tensor].is_data)
        return;
    int handle = take_block(replay, tensor_bytes(replay, tensor));
    if (life->gradient == NONE)
        life->gradient = handle;
    else
        release_block(replay, &handle);
}

static void release_kept(struct replay *replay, int tensor, int op)
{
    struct tensor_life *root = &replay->lives[replay->lives[tensor].root];
    if (root->first_keep == op && !replay->tape->tensors[root - replay->lives].is_data)
        release_block(replay, &root->block);
}

/* Allocates the gradient of a weight: in 16 bit if the product is. Returns its block. */
static int weight_gradient(struct replay *replay, size_t i)
{
    const struct op *op = &replay->tape->ops[i];
    int gradient = take_block(
        replay, (op->weight + op->tied) * (casts_weights(replay, op) ? HALF_BYTES : WEIGHT_BYTES));
    take_scratch(replay, i, CONV_WEIGHT_GRADIENT);
    return gradient;
}

/* Adds two gradients of one weight: the sum is a third tensor. */
static void add_tied(struct replay *replay, int *sum, int gradient)
{
    if (*sum == NONE) {
        *sum = gradient;
        return;
    }
    int result = take_block(replay, (double)replay->allocator.blocks[gradient].size);
    release_block(replay, sum);
    release_block(replay, &gradient);
    *sum = result;
}

/* Of a divided gradient the process keeps its part. */
static void keep_part(struct replay *replay, int *gradient)
{
    double share = replay->tape->division.gradients;
    if (share == 1 || *gradient == NONE)
        return;
    int part = take_block(replay, share * (double)replay->allocator.blocks[*gradient].size);
    release_block(replay, gradient); /* all of it, where gradients are on the host */
    *gradient = part;
}

/* Turns the computed gradient into the weight's, where that was copied, and adds it to that of
 * another operation with the same weight. */
static void accumulate_gradient(
    struct replay *replay, const struct op *op, struct parameter_blocks *blocks, int computed)
{
    double bytes = (op->weight + op->tied) * WEIGHT_BYTES;
    int gradient = computed;
    if (copied_weight_bytes(replay, op) > 0) {
        gradient = take_block(replay, bytes);
        release_block(replay, &computed);
    }
    if (op->tied_to != TAPE_NONE) {
        add_tied(replay, &replay->parameters[op->tied_to].tied_gradient, gradient);
        return;
    }
    blocks->weight_gradient = gradient;
    if (blocks->tied_gradient != NONE)
        add_tied(replay, &blocks->weight_gradient, blocks->tied_gradient);
    blocks->tied_gradient = NONE;
    keep_part(replay, &blocks->weight_gradient);
}

static void backward_op(struct replay *replay, size_t i)
{
    const struct op *op = &replay->tape->ops[i];
    struct parameter_blocks *blocks = &replay->parameters[i];
    if (op->kind == LAYER_INPUT)
        return;
    if (replay->lives[op->output].gradient == NONE)
        add_gradient(replay, op->output);
    for (int k = 0; k < OP_INPUTS; k++)
        if (op->inputs[k] != TAPE_NONE)
            add_gradient(replay, op->inputs[k]);
    use_blas_workspace(replay, op, true);
    take_scratch(replay, i, CONV_INPUT_GRADIENT);
    int computed = weight_gradient(replay, i);
    blocks->bias_gradient = take_block(replay, op->bias * WEIGHT_BYTES);
    release_block(replay, &replay->lives[op->output].gradient);
    release_block(replay, &blocks->kept);
    release_block(replay, &blocks->copy);
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
static void compute_loss(struct replay *replay)
{
    const struct tape *tape = replay->tape;
    const struct tensor *logits = &tape->tensors[tape->n_tensors - 1];
    double bytes = logits->elements * tape->batch * WEIGHT_BYTES;
    bool raises = logits->element_bytes < WEIGHT_BYTES && tape->raises_logits;
    int single = raises ? take_block(replay, bytes) : NONE;
    replay->loss = take_block(replay, bytes);
    release_block(replay, &single);
    if (tape->result != (int)tape->n_tensors - 1) /* within the loss */
        release_block(replay, &replay->lives[tape->n_tensors - 1].block);
    int gradient = take_block(replay, bytes);
    single = raises ? take_block(replay, bytes) : NONE;
    add_gradient(replay, (int)tape->n_tensors - 1);
    release_block(replay, &gradient);
    release_block(replay, &single);
    release_block(replay, &replay->loss);
    replay->footprint.loss = bytes;
}

/* A stage of a pipeline gets the gradient of its result from the next stage. */
static void loss_and_backward(struct replay *replay)
{
    const struct tape *tape = replay->tape;
    int last_output = replay->output;
    struct tensor_life *output = &replay->lives[replay->lives[tape->result].root];
    release_block(replay, &last_output);
    replay->output = NONE;
    if (tape->division.sends_result)
        add_gradient(replay, tape->result);
    else
        compute_loss(replay);
    for (size_t i = tape->n_ops; i-- > 0;)
        backward_op(replay, i);
    replay->loose_gradient = take_block(replay, tape->loose_parameters * WEIGHT_BYTES);
    keep_part(replay, &replay->loose_gradient);
    replay->output = output->block; /* a loop's variable holds it until the next step's output */
    output->block = NONE;
}

static void take_states(struct replay *replay)
{
    double bytes = WEIGHT_BYTES * replay->tape->division.states;
    for (int s = 0; s < replay->optimizer->states; s++) {
        for (size_t i = 0; i < replay->tape->n_ops; i++) {
            const struct op *op = &replay->tape->ops[i];
            take_block(replay, op->weight * bytes);
            take_block(replay, op->bias * bytes);
        }
        take_block(replay, replay->tape->loose_parameters * bytes);
    }
}

/* foreach: the temporaries of all parameters live at once. Returns how many they are. */
static size_t take_temporaries(struct replay *replay, int *ret_temporaries)
{
    size_t n = 0;
    double bytes = WEIGHT_BYTES * replay->tape->division.states;
    if (!replay->optimizer->temporaries)
        return 0;
    for (size_t i = 0; i < replay->tape->n_ops; i++) {
        ret_temporaries[n++] = take_block(replay, replay->tape->ops[i].weight * bytes);
        ret_temporaries[n++] = take_block(replay, replay->tape->ops[i].bias * bytes);
    }
    ret_temporaries[n++] = take_block(replay, replay->tape->loose_parameters * bytes);
    return n;
}

/* After the last step nothing is taken any more, so that nothing needs to be free. */
static void step_optimizer(struct replay *replay, int *temporaries, bool is_last)
{
    size_t n = take_temporaries(replay, temporaries);
    while (!is_last && n > 0)
        release_block(replay, &temporaries[--n]);
}

static void note_saved(struct replay *replay)
{
    const struct tape *tape = replay->tape;
    double saved = 0, largest = 0;
    for (size_t t = 0; t < tape->n_tensors; t++) {
        double bytes = tensor_bytes(replay, (int)t);
        bool counts = replay->lives[t].root == (int)t && !tape->tensors[t].is_data;
        saved += counts && replay->lives[t].first_keep != NONE ? bytes : 0;
        largest = bytes > largest ? bytes : largest;
    }
    for (size_t i = 0; i < tape->n_ops; i++)
        saved += tape->ops[i].kept_bytes * tape->batch;
    replay->footprint.saved = saved;
    replay->footprint.largest_map = largest;
}

static void replay_steps(struct replay *replay, int *temporaries)
{
    for (int i = 0; i < STEPS && replay->error == 0; i++) {
        int units[UNITS_MOST];
        zero_grad(replay);
        int n = gather_units(replay, false, units);
        run_forward(replay);
        release_units(replay, units, n);
        n = gather_units(replay, true, units);
        loss_and_backward(replay);
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
    struct replay replay = {.tape = tape, .optimizer = optimizer, .variant = variant};
    int *temporaries = malloc((2 * tape->n_ops + 1) * sizeof *temporaries);
    replay.parameters = malloc(tape->n_ops * sizeof *replay.parameters);
    replay.lives = malloc(tape->n_tensors * sizeof *replay.lives);
    allocator_init(&replay.allocator);
    if (temporaries && replay.parameters && replay.lives) {
        find_lives(&replay);
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
