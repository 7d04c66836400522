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
    bool sends_result; /* the stage of a pipeline whose result the next stage gets */
};

/* DDP's default bucket_cap_mb; a bucket ends with the tensor that fills it. */
#define DIVISION_BUCKET_BYTES ((double)(25 << 20))

/* Returns how many processes divide the model by tensors or as a pipeline; 1: they do not. */
int division_degree(const struct estimate_request *request);

/* Tests whether the request's ways fit together. Returns NULL, or why they do not. */
const char *division_conflict(const struct estimate_request *request);

/* Returns what NCCL takes in a process of the request, in bytes; 0: it is not used. A script's
 * export knows how many processes there are. */
int division_nccl_bytes(const struct estimate_request *request);

/* Returns the division for a request: all whole for one GPU. */
struct division division_of(const struct estimate_request *request);

#endif
