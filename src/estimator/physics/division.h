/* SPDX-License-Identifier: Apache-2.0 */
/* One process's part of the model in a training with several: its shares of weights, gradients and
 * optimizer states, and what it allocates for the shares of the others. */
#ifndef COLLOC_PHYSICS_DIVISION_H
#define COLLOC_PHYSICS_DIVISION_H

#include "estimator/estimator.h"

struct division {
    double weights, gradients, states; /* shares: 1, or 1 / processes */
    double unit;       /* elements of the parameters that are gathered at a time; 0: none are */
    bool gathers_next; /* the next unit is gathered meanwhile: there are several */
    bool buckets;      /* gradients are copied into buckets */
};

/* DDP's default bucket_cap_mb; a bucket ends with the tensor that fills it. */
#define DIVISION_BUCKET_BYTES ((double)(25 << 20))

/* Returns the division for a request: all whole for one GPU. */
struct division division_of(const struct estimate_request *request);

#endif
