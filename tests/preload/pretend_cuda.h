/* SPDX-License-Identifier: Apache-2.0 */
/* The file that the pretend libcuda's processes share, and a test writes. All zero but the first.
 * */
#ifndef COLLOC_TESTS_PRELOAD_PRETEND_CUDA_H
#define COLLOC_TESTS_PRELOAD_PRETEND_CUDA_H

#include <stdatomic.h>
#include <stdint.h>

struct pretend_gpu {
    _Atomic uint64_t total_bytes, used_bytes;
    _Atomic uint64_t tries, refusals; /* of allocations */
    _Atomic uint64_t suspended;       /* a synchronising call is a crash */
    _Atomic uint64_t busy;            /* synchronising calls do not return; nor do those that free
                                         memory, when it is free */
    _Atomic uint64_t synchronising;   /* how many calls are at it */
    uint64_t context_bytes;
    unsigned char uuid[16];
    _Atomic uint64_t held; /* a bit for each call that does not return (enum held_call) */
};

enum held_call {
    HOLD_COPY_OUT = 1,
    HOLD_UNMAP = 2,
    HOLD_CREATE = 4,
    HOLD_COPY_BACK = 8,
    HOLD_COPY_ACROSS = 16
};

#endif
