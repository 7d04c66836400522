/* SPDX-License-Identifier: Apache-2.0 */
/* Completes the moves of one task's GPUs to the permutation of all GPUs that the driver wants. */
#ifndef COLLOC_CHECKPOINT_GPU_PERMUTATION_H
#define COLLOC_CHECKPOINT_GPU_PERMUTATION_H

#include <stddef.h>

/*
 * Completes moves to a permutation: a GPU that no move names stays, unless a moved one takes its
 * place; then it goes where the chain of moves began.
 *
 *   ret_to: `count` entries; on entry the GPU that each GPU's processes go to, or -1: not named
 *   count:  of all GPUs of the machine
 *
 * Returns 0, or -EINVAL (two moves lead to one GPU, or out of range) with nothing changed.
 */
int gpu_permutation_complete(int *ret_to, size_t count);

#endif
