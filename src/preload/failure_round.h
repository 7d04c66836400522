/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which failure of an allocation is final, in a framework that tries again.
 *
 * Such frameworks free what they have cached and try again: PyTorch and CuPy with the same size,
 * XLA and TensorFlow with smaller and smaller ones, and then from the beginning. Only when that
 * fails, too, is the memory really missing. So the failures of a first round pass, and the smallest
 * size of that round is final when it fails again.
 *
 *     PyTorch   256 fails, passes; the cache is freed; 256 fails: final
 *     XLA       512, 460, 414 fail, pass; 512, 460 fail, pass; 414 fails: final
 */
#ifndef COLLOC_PRELOAD_FAILURE_ROUND_H
#define COLLOC_PRELOAD_FAILURE_ROUND_H

#include <stdbool.h>
#include <stdint.h>

/* The failures of one thread since its last success. All zero: none. */
struct failure_round {
    uint64_t last_bytes, smallest_bytes; /* of the round under way */
    uint64_t final_bytes;                /* the smallest of the round before; 0: there was none */
};

/* Notes a failure of `bytes`, more than 0. Returns whether it is final. */
bool failure_round_add(struct failure_round *round, uint64_t bytes);

#endif
