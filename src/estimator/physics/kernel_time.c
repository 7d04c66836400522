/* SPDX-License-Identifier: Apache-2.0 */
/* A roofline for one kernel: of tiles for products, of blocks for others. */
#include "estimator/physics/kernel_time.h"

#include <math.h>
#include <stddef.h>

enum {
    FLOPS_PER_MAC = 2,      /* a multiplication and an addition */
    BLOCK_OUTPUTS = 512,    /* elements of a block of PyTorch's elementwise kernels: 128 threads, 4
                              each (ATen/native/cuda/CUDALoops.cuh) */
    SPLITS_MOST = 32,       /* chosen: parts into which the depth of a product is cut */
    SPLIT_DEPTH_MIN = 256,  /* chosen: depth of a part at least */
    DEPTH_MIN = 16,         /* of a tensor core's step */
    TENSOR_CORE_BYTES = 16, /* channels come in multiples of it (cuDNN's developer guide) */
    LAYOUT_PASSES = 2,      /* a change of the layout reads and writes */
    LAYOUT_KERNELS = 3,     /* for the input, the weight and the output */
};

/* A tile of a product, and its rate as a part of the largest tile's. */
struct tile {
    double rows, columns, share;
};

static const double micro = 1e6, nano_in_micro = 1e-3;

/* What products by the instructions before wgmma reach of Hopper's rate (Luo et al., 2025:
 * Dissecting the NVIDIA Hopper Architecture through Microbenchmarking, arXiv 2501.12084). */
static const double older_products_share = 0.63;

static double element_bytes(bool half)
{
    return half ? 2 : 4;
}

bool kernel_is_unaligned(double channels, bool half)
{
    return fmod(channels * element_bytes(half), TENSOR_CORE_BYTES) != 0;
}

static bool is_product(enum kernel_kind kind)
{
    return kind == KERNEL_PRODUCT || kind == KERNEL_POINTWISE || kind == KERNEL_CONV ||
           kind == KERNEL_GROUPED;
}

/* Tensor cores compute 16 bit, and TF32 in convolutions alone, as PyTorch does by default. For one
 * tap cuDNN takes Ampere's kernels on an H200, too (data/steps: cutlass_80_tensorop_s1688gemm). */
static double flops_of_product(
    const struct kernel *kernel, const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    if (kernel->kind == KERNEL_PRODUCT && !kernel->half)
        return gpu->flops_single * rates->single_share;
    double flops = kernel->half ? gpu->flops_half * rates->half_share
                                : gpu->flops_fp32 * rates->tf32_share;
    if (kernel->kind == KERNEL_POINTWISE && !kernel->half)
        flops *= rates->pointwise_share * (gpu->has_own_products ? older_products_share : 1);
    if (kernel->kind == KERNEL_GROUPED)
        flops *= rates->grouped_share;
    if (kernel->gradient)
        flops *= rates->gradient_share;
    return kernel->unaligned ? flops * rates->unaligned_share : flops;
}

static double flops_of_others(
    const struct kernel *kernel, const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    if (kernel->kind == KERNEL_DEPTHWISE) {
        /* They wait for their loads, not for lanes: of these an H200's SM has twice an A100's. */
        double rate = kernel->gradient ? rates->depthwise_gradient_rate : rates->depthwise_rate;
        return gpu->sms * gpu->cycles_per_s * rate;
    }
    return kernel->half ? gpu->flops_half * rates->attention_share
                        : gpu->flops_single * rates->attention_single_share;
}

/* The time of all tiles in waves, with the depth cut into `splits` parts. */
static struct kernel_time time_of_tiles(
    const struct kernel *kernel, const struct tile *tile, double splits, double flops, int sms)
{
    double tiles = kernel->count * ceil(kernel->m / tile->rows) * ceil(kernel->n / tile->columns) *
                   splits;
    double waves = fmax(1, ceil(tiles / sms)), depth = fmax(kernel->k / splits, DEPTH_MIN);
    double of_tile = FLOPS_PER_MAC * tile->rows * tile->columns * depth /
                     (flops * tile->share / sms) * micro;
    return (struct kernel_time){.us = waves * of_tile, .fill = tiles / (waves * sms)};
}

/* Libraries choose tiles and splits by a rule like this one: the fastest. */
static struct kernel_time time_of_product(
    const struct kernel *kernel, const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    const struct tile tiles[] = {
        {128, 256, 1}, {128, 128, rates->square_tile_share}, {64, 64, rates->small_tile_share}};
    double flops = flops_of_product(kernel, gpu, rates);
    struct kernel_time best = {.us = INFINITY, .fill = 1};
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        for (double splits = 1; splits <= SPLITS_MOST; splits *= 2) {
            if (splits > 1 && kernel->k < splits * SPLIT_DEPTH_MIN)
                break;
            struct kernel_time t = time_of_tiles(kernel, &tiles[i], splits, flops, gpu->sms);
            if (t.us < best.us)
                best = t;
        }
    return best;
}

static double share_of_sms(double blocks, int sms)
{
    return fmin(1, fmax(1, blocks) / sms);
}

static double memory_us(
    const struct kernel *kernel, const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    double share = kernel->kind == KERNEL_NORM ? rates->norm_share : rates->bandwidth_share;
    return kernel->bytes / (gpu->bytes_per_s * share) * micro;
}

/* Sums over the batch: the elements pass through one block for each sum. */
static struct kernel_time time_of_norm(
    const struct kernel *kernel, const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    struct kernel_time t = {.fill = share_of_sms(kernel->outputs / BLOCK_OUTPUTS, gpu->sms)};
    double blocks = fmin(kernel->parts, gpu->sms);
    if (kernel->parts > 0) {
        t.us = kernel->bytes / element_bytes(kernel->half) / blocks * rates->norm_element_ns *
               nano_in_micro;
        t.fill = blocks / gpu->sms;
    }
    return t;
}

static struct kernel_time time_of_others(
    const struct kernel *kernel, const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    return (struct kernel_time){
        .us = kernel->macs > 0
                  ? FLOPS_PER_MAC * kernel->macs / flops_of_others(kernel, gpu, rates) * micro
                  : 0,
        .fill = share_of_sms(kernel->outputs / BLOCK_OUTPUTS, gpu->sms)};
}

/* The kernels of which it really consists, that of a convolution with those for its layout. */
static double launches_of(const struct kernel *kernel)
{
    if (kernel->kind == KERNEL_RECURRENT)
        return kernel->count;
    return kernel->kind == KERNEL_CONV || kernel->kind == KERNEL_GROUPED ? 1 + LAYOUT_KERNELS : 1;
}

static double layout_us(
    const struct kernel *kernel, const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    return kernel->kind == KERNEL_CONV || kernel->kind == KERNEL_GROUPED
               ? LAYOUT_PASSES * kernel->bytes / (gpu->bytes_per_s * rates->transform_share) * micro
               : 0;
}

struct kernel_time kernel_time_of(
    const struct kernel *kernel, const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    struct kernel_time t = is_product(kernel->kind)      ? time_of_product(kernel, gpu, rates)
                           : kernel->kind == KERNEL_NORM ? time_of_norm(kernel, gpu, rates)
                                                         : time_of_others(kernel, gpu, rates);
    t.idle_us = launches_of(kernel) *
                (kernel->kind == KERNEL_RECURRENT ? rates->chain_us : rates->kernel_us);
    t.us = fmax(t.us, memory_us(kernel, gpu, rates)) + layout_us(kernel, gpu, rates) + t.idle_us;
    return t;
}
