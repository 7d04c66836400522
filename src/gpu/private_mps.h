/* SPDX-License-Identifier: Apache-2.0 */
/* An MPS control daemon that only this program's children use, in a temporary folder. */
#ifndef COLLOC_GPU_PRIVATE_MPS_H
#define COLLOC_GPU_PRIVATE_MPS_H

#include <stddef.h>

#include "base/fault.h"

/* Start with {0}. */
struct private_mps {
    char pipe[64]; /* for CUDA_MPS_PIPE_DIRECTORY; "": none runs */
};

/* Starts it for `count` GPUs. Returns as mps_start does. private_mps_stop must follow. */
int private_mps_start(
    struct private_mps *mps, const char *const *uuids, size_t count, struct fault *fault);

/* Stops it, if it runs, and removes the folder. */
void private_mps_stop(struct private_mps *mps);

#endif
