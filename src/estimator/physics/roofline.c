/* SPDX-License-Identifier: Apache-2.0 */
#include "estimator/physics/roofline.h"

const struct activity_rates activity_rates =
#include "estimator/physics/activity_rates.inc"
    ;

enum {
    BLOCK_OUTPUTS = 4096, /* output elements that one thread block makes, so that it fills one SM */
    BACKWARD_PASSES = 2,  /* gradients of the input and of the weight */
    OPTIMIZER_LAUNCHES = 24,
    WEIGHT_BYTES = 4,
};

/* Sums over a step, in microseconds of a whole GPU or of the host. */
struct load {
    const struct activity_rates *rates;
    double busy, resident, launches, traffic;
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void add_kernel(struct load *load, const struct gpu_traits *gpu, double flops_per_s,
    double macs, double bytes, double outputs)
{
    double blocks = outputs / BLOCK_OUTPUTS,
           fill = blocks < gpu->sms ? larger(blocks, 1) / gpu->sms : 1;
    double compute_us = 2 * macs / (flops_per_s * load->rates->matrix_share) * 1e6 / fill;
    double memory_us = bytes / (gpu->bytes_per_s * load->rates->bandwidth_share) * 1e6;
    double us = larger(compute_us, memory_us) + 1; /* no kernel is done sooner */
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
                   (3 + 2 * optimizer->states + 2 * optimizer->temporaries);
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
    double step_us = larger(load.busy, load.launches * rates->launch_us);
    return (struct activity){.step_us = step_us,
        .smact = load.resident / step_us,
        .dram = load.traffic / (gpu->bytes_per_s * step_us / 1e6)};
}
