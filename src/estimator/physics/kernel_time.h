/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of one kernel on a GPU, and the part of the SMs on which it runs.
 *
 * A kernel takes the longer of two times: that of its multiply-adds, and that of its bytes. A
 * product of matrices is cut into tiles, which SMs compute in waves: the last wave leaves SMs idle,
 * and so does a product of fewer tiles than SMs. Other kernels are cut into blocks of as many
 * elements each; a normalisation over the batch has one block for each channel.
 *
 * Example: a product of 1024 x 1024 makes 64 tiles of 128 x 128. On 132 SMs it takes as long as one
 * of 132 tiles, on half of the SMs.
 *
 * A convolution of one tap is a product of each map. One of several taps is a product, too, for
 * which cuDNN moves the channels behind the positions, and afterwards back (data/steps: traces of
 * PyTorch 2.11 with cuDNN 9.19, whose tensors have their channels first).
 */
#ifndef COLLOC_PHYSICS_KERNEL_TIME_H
#define COLLOC_PHYSICS_KERNEL_TIME_H

#include <stdbool.h>

#include "estimator/physics/activity_rates.h"
#include "estimator/physics/gpu_traits.h"

enum kernel_kind {
    KERNEL_SIMPLE,    /* moves bytes */
    KERNEL_NORM,      /* normalisation, softmax */
    KERNEL_PRODUCT,   /* of matrices */
    KERNEL_POINTWISE, /* a convolution of one tap */
    KERNEL_CONV,      /* of several taps */
    KERNEL_GROUPED,   /* in groups */
    KERNEL_DEPTHWISE, /* of each channel for itself */
    KERNEL_ATTENTION, /* without a matrix of scores in memory */
    KERNEL_RECURRENT, /* a chain of kernels */
};

struct kernel {
    enum kernel_kind kind;
    bool half;             /* in 16 bit */
    bool gradient;         /* of a weight; of a depthwise convolution: any */
    bool unaligned;        /* channels that tensor cores cannot use */
    double m, n, k, count; /* `count` products of m x k and k x n; of a chain: its kernels */
    double macs;           /* multiply-adds, of kinds that are no product */
    double bytes;          /* read and written */
    double outputs;        /* elements written */
    double
        parts; /* of a normalisation: sums over the batch, each in one block; 0: there are none */
};

struct kernel_time {
    double us;
    double idle_us; /* of these: between kernels, while no SM holds a block */
    double fill;    /* 0..1: the mean part of the SMs that hold blocks at other times */
};

/* Tests whether tensor cores cannot use a convolution's channels, in 16 bit (`half`) or TF32. */
bool kernel_is_unaligned(double channels, bool half);

/* Returns the time of a kernel alone on the GPU. */
struct kernel_time kernel_time_of(
    const struct kernel *kernel, const struct gpu_traits *gpu, const struct activity_rates *rates);

#endif
