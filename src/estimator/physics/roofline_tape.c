/* SPDX-License-Identifier: Apache-2.0 */
/* The roofline of a tape: each operation is a kernel in the forward pass and one or two in the
 * backward pass, and products stand for operators that a summary does not show. */
#include <math.h>

#include "estimator/physics/step_load.h"
#include "estimator/physics/trained_part.h"

enum {
    READ_AND_WRITE = 2,
    OPTIMIZER_TENSORS = 3, /* a gradient is read, a weight is read and written */
    BACKWARD_PASSES = 2,   /* gradients of the input and of the weight */
    FORWARD_AND_BACKWARD = 2,
    RUNNING_STATISTICS = 2, /* of a normalisation over the batch: mean and variance by channel */
};

/* Operators over lists of tensors for each state of the optimizer and each temporary, beside one:
 * SGD has 1, momentum 3 and Adam 10 (PyTorch 2.11). */
enum { LISTS_OF_STATE = 2, LISTS_OF_TEMPORARY = 5 };

static double tensor_bytes(const struct tape *tape, int tensor)
{
    return tensor == TAPE_NONE
               ? 0
               : tape->tensors[tensor].elements * tape->batch * tape->tensors[tensor].element_bytes;
}

static double positions_of(const struct tensor *map)
{
    return map->elements / fmax(1, map->first);
}

static enum kernel_kind kind_of_map(const struct tape *tape, const struct op *op, double groups)
{
    if (op->depthwise || groups > 1)
        return op->depthwise ? KERNEL_DEPTHWISE : KERNEL_GROUPED;
    return op->window == 1 && op->inputs[0] != TAPE_NONE &&
                   positions_of(&tape->tensors[op->inputs[0]]) ==
                       positions_of(&tape->tensors[op->output])
               ? KERNEL_POINTWISE
               : KERNEL_CONV;
}

static enum kernel_kind kind_of_op(const struct tape *tape, const struct op *op, double groups)
{
    if (op->macs <= 0)
        return op->kind == LAYER_NORM ? KERNEL_NORM : KERNEL_SIMPLE;
    if (op->kind == LAYER_RECURRENT)
        return KERNEL_RECURRENT;
    if (op->kind == LAYER_CONV)
        return kind_of_map(tape, op, groups);
    return op->weight > 0 ? KERNEL_PRODUCT : KERNEL_ATTENTION;
}

/* The forward kernel of an operation, its product from the weight and the output's channels. */
static struct kernel kernel_of_op(const struct tape *tape, const struct op *op)
{
    const struct tensor *output = &tape->tensors[op->output];
    double channels = fmax(1, op->kind == LAYER_CONV ? output->first : output->last),
           outputs = output->elements * tape->batch, depth = op->weight / channels, groups = 1;
    struct kernel kernel = {.half = tape_is_half(tape),
        .macs = op->macs * tape->batch,
        .bytes = tensor_bytes(tape, op->output) + op->weight * STEP_FP32_BYTES,
        .outputs = outputs};
    for (int i = 0; i < OP_INPUTS; i++)
        kernel.bytes += tensor_bytes(tape, op->inputs[i]);
    if (op->kind == LAYER_CONV && op->inputs[0] != TAPE_NONE && depth > 0) {
        double inputs = tape->tensors[op->inputs[0]].first;
        groups = fmax(1, inputs * op->window / depth);
        kernel.unaligned = kernel_is_unaligned(inputs / groups, kernel.half) ||
                           kernel_is_unaligned(channels / groups, kernel.half);
    }
    kernel.kind = kind_of_op(tape, op, groups);
    kernel.parts = op->kind == LAYER_NORM ? op->buffers / RUNNING_STATISTICS : 0;
    kernel.count = op->kind == LAYER_RECURRENT ? fmax(1, tape->sequence) : groups;
    kernel.m = outputs / channels;
    kernel.n = channels / groups;
    kernel.k = depth;
    return kernel;
}

/* The gradient of the input multiplies by the same weight, that of the weight sums over
 * positions, and that of a normalisation's weight over the batch. */
static struct kernel gradient_of(const struct op *op, const struct kernel *forward, int pass)
{
    struct kernel kernel = *forward;
    kernel.gradient = pass == 1 || forward->kind == KERNEL_DEPTHWISE;
    if (op->kind == LAYER_NORM)
        kernel.parts = op->weight;
    if (pass == 0) {
        kernel.n = forward->k;
        kernel.k = forward->n;
    } else {
        kernel.m = forward->n;
        kernel.n = forward->k;
        kernel.k = forward->m;
    }
    return kernel;
}

static void add_host(struct step_load *load, double operators)
{
    const struct activity_rates *rates = load->rates;
    load->host_us[STEP_FORWARD] += operators * (rates->forward_us + rates->view_us);
    load->host_us[STEP_BACKWARD] += operators * (rates->backward_us + rates->view_us);
}

/* Around the products of tokens the code changes layouts and types, adds and multiplies, which the
 * text does not show. Each of these operators reads and writes what the product makes. */
static void add_hidden(struct step_load *load, const struct tape *tape, const struct op *op)
{
    const struct tensor *output = &tape->tensors[op->output];
    struct kernel kernel = {.kind = KERNEL_SIMPLE,
        .half = tape_is_half(tape),
        .bytes = READ_AND_WRITE * tensor_bytes(tape, op->output),
        .outputs = output->elements * tape->batch};
    step_load_kernel(load, &kernel, FORWARD_AND_BACKWARD * load->rates->hidden);
    add_host(load, load->rates->hidden);
}

static int backward_passes(const struct tape *tape, const struct op *op)
{
    if (tape->tensors[op->output].needs_no_gradient)
        return 0;
    return op->macs > 0 && !op->frozen ? BACKWARD_PASSES : 1;
}

static void add_op(struct step_load *load, const struct tape *tape, const struct op *op)
{
    const struct activity_rates *rates = load->rates;
    struct kernel forward = kernel_of_op(tape, op);
    step_load_kernel(load, &forward, 1);
    int passes = backward_passes(tape, op);
    for (int i = 0; i < passes; i++) {
        struct kernel kernel = gradient_of(op, &forward, i);
        step_load_kernel(load, &kernel, 1);
    }
    add_host(load, 1);
    load->host_us[STEP_FORWARD] += rates->module_us;
    if (op->kind == LAYER_CONV) {
        load->host_us[STEP_FORWARD] += rates->conv_us;
        load->host_us[STEP_BACKWARD] += rates->conv_us * passes;
    }
    if (forward.kind == KERNEL_PRODUCT || forward.kind == KERNEL_ATTENTION)
        add_hidden(load, tape, op);
}

/* A gradient read, a weight and each state read and written, by operators over lists. */
static void add_update(
    struct step_load *load, const struct tape *tape, const struct optimizer_traits *optimizer)
{
    double tensors = 0, lists = 1 + LISTS_OF_STATE * optimizer->states +
                                LISTS_OF_TEMPORARY * optimizer->temporaries;
    double passes = OPTIMIZER_TENSORS +
                    READ_AND_WRITE * (optimizer->states + optimizer->temporaries);
    for (size_t i = 0; i < tape->n_ops; i++)
        tensors += tape->ops[i].frozen ? 0 : (tape->ops[i].weight > 0) + (tape->ops[i].bias > 0);
    double trained = tape_trained_parameters(tape);
    step_load_lists(
        load, lists, fmax(1, tensors), trained * STEP_FP32_BYTES * passes / lists, trained);
}

struct activity activity_of_tape(const struct tape *tape, const struct optimizer_traits *optimizer,
    const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    struct step_load load = step_load_begin(gpu, rates);
    for (size_t i = 0; i < tape->n_ops; i++)
        add_op(&load, tape, &tape->ops[i]);
    add_update(&load, tape, optimizer);
    return step_load_activity(&load);
}
