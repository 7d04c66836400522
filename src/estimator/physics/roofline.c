/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A roofline over the operations of a tape.
 *
 * Each operation is a kernel in the forward pass and one or two in the backward pass. A kernel
 * takes the longer of two times: its multiply-adds at the rate of the tensor cores, and its bytes
 * at the rate of the memory; neither rate is reached, so both are multiplied by a fitted share. A
 * kernel whose output fills only some SMs computes on those alone. A step takes at least as long as
 * the host needs to launch all kernels. SM activity is the time in which SMs hold blocks, over the
 * step.
 *
 * Example: a step of 400 launches of 110 us each takes 44 ms, even where its kernels are done in 3
 * ms: then SM activity is 7 % at most.
 */
#include "estimator/physics/roofline.h"

const struct activity_rates activity_rates =
#include "estimator/physics/activity_rates.inc"
    ;

enum {
    BLOCK_OUTPUTS = 4096,    /* elements that a thread block makes; chosen: tiles of 64 x 64, as
                                cuBLAS's and cuDNN's smaller kernels have, one on each SM */
    BACKWARD_PASSES = 2,     /* gradients of the input and of the weight */
    OPTIMIZER_LAUNCHES = 24, /* chosen: foreach kernels of Adam for a network of common size */
    OPTIMIZER_TENSORS = 3,   /* a gradient is read, a weight is read and written */
    READ_AND_WRITE = 2,
    FLOPS_PER_MAC = 2,   /* a multiplication and an addition */
    WEIGHT_BYTES = 4,    /* of fp32, in which weights stay under autocast */
    KERNEL_LEAST_US = 1, /* chosen: no kernel takes less */
};

/* Sums over a step, in microseconds of a whole GPU or of the host. */
struct load {
    const struct activity_rates *rates;
    double busy, resident, launches, traffic;
};

static double larger_of(double a, double b)
{
    return a > b ? a : b;
}

static void add_kernel(struct load *load, const struct gpu_traits *gpu, double flops_per_s,
    double macs, double bytes, double outputs)
{
    double blocks = outputs / BLOCK_OUTPUTS,
           fill = blocks < gpu->sms ? larger_of(blocks, 1) / gpu->sms : 1;
    double compute_us = FLOPS_PER_MAC * macs / (flops_per_s * load->rates->matrix_share) * 1e6 /
                        fill;
    double memory_us = bytes / (gpu->bytes_per_s * load->rates->bandwidth_share) * 1e6;
    double us = larger_of(compute_us, memory_us) + KERNEL_LEAST_US;
    load->busy += us;
    load->resident += us * fill;
    load->launches += 1;
    load->traffic += bytes;
}

static double tensor_bytes(const struct tape *tape, int tensor)
{
    return tensor == TAPE_NONE
               ? 0
               : tape->tensors[tensor].elements * tape->batch * tape->tensors[tensor].element_bytes;
}

static void add_op(
    struct load *load, const struct tape *tape, const struct gpu_traits *gpu, const struct op *op)
{
    double outputs = tape->tensors[op->output].elements * tape->batch,
           bytes = tensor_bytes(tape, op->output);
    double rate = tape->autocast ? gpu->flops_half : gpu->flops_fp32, macs = op->macs * tape->batch;
    for (int i = 0; i < OP_INPUTS; i++)
        bytes += tensor_bytes(tape, op->inputs[i]);
    bytes += op->weight * WEIGHT_BYTES;
    add_kernel(load, gpu, rate, macs, bytes, outputs);
    for (int i = 0; i < BACKWARD_PASSES && (macs > 0 || i == 0); i++)
        add_kernel(load, gpu, rate, macs, bytes, outputs);
}

/* A gradient read, a weight and each state read and written, in a few launches for all parameters
 * together. */
static void add_optimizer(struct load *load, const struct tape *tape,
    const struct optimizer_traits *optimizer, const struct gpu_traits *gpu)
{
    double bytes = tape->parameters * WEIGHT_BYTES *
                   (OPTIMIZER_TENSORS +
                       READ_AND_WRITE * (optimizer->states + optimizer->temporaries));
    add_kernel(load, gpu, gpu->flops_fp32, 0, bytes, tape->parameters);
    load->launches += OPTIMIZER_LAUNCHES;
}

struct activity activity_estimate(const struct tape *tape, const struct optimizer_traits *optimizer,
    const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    struct load load = {.rates = rates};
    for (size_t i = 0; i < tape->n_ops; i++)
        add_op(&load, tape, gpu, &tape->ops[i]);
    add_optimizer(&load, tape, optimizer, gpu);
    double step_us = larger_of(load.busy, load.launches * rates->launch_us);
    return (struct activity){.step_us = step_us,
        .smact = load.resident / step_us,
        .dram = load.traffic / (gpu->bytes_per_s * step_us / 1e6)};
}
