/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a training by DistributedDataParallel waits for the sum of its gradients over all GPUs.
 *
 * The gradients of the last layers are ready first. They fill a bucket, whose sum is on its way
 * while the backward pass goes on: only what is left when the backward pass has ended is waited
 * for (Li et al., "PyTorch Distributed", VLDB 2020, section 3.2).
 *
 * Example: 3.1 GB of gradients on two GPUs that send 240 GB/s take 13 ms, of which a backward pass
 * of 1.1 s hides all but the last bucket. Over PCIe at 20 GB/s they take 155 ms, which a backward
 * pass of 100 ms does not hide.
 */
#ifndef COLLOC_PHYSICS_GRADIENT_EXCHANGE_H
#define COLLOC_PHYSICS_GRADIENT_EXCHANGE_H

#include "estimator/physics/gpu_traits.h"

/* A training that exchanges gradients. */
struct gradient_exchange {
    double bytes;       /* of all gradients of a process */
    double processes;   /* each with a GPU, of one host */
    double bytes_per_s; /* that a GPU sends and receives at once; 0: not known */
    double backward_us; /* of the backward pass without the exchange */
};

/* Returns the time that a step waits for the exchange, in microseconds; 0 for one process, and
 * where the rate is not known. */
double gradient_exchange_wait_us(const struct gradient_exchange *exchange);

#endif
