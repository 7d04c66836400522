/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preallocation: TensorFlow allocates nearly all memory of its GPUs when it starts, JAX three
 * quarters. Such a peak says nothing about the memory requirement of the network, so it must not be
 * learned.
 *
 * The rule: a peak is not learned if the task's environment requests preallocation, or if it leaves
 * preallocation on and the task, alone on a GPU, took 70 % of it.
 */
#ifndef COLLOC_DAEMON_PREALLOCATION_H
#define COLLOC_DAEMON_PREALLOCATION_H

#include <stdbool.h>

#include "base/reading.h"

enum preallocation {
    PREALLOCATION_NOT_SET, /* the environment does not set it for both frameworks */
    PREALLOCATION_OFF,
    PREALLOCATION_ASKED,
};

/*
 * Reads the submitted environment.
 *
 * growth:      value of TF_FORCE_GPU_ALLOW_GROWTH, or NULL
 * preallocate: value of XLA_PYTHON_CLIENT_PREALLOCATE, or NULL
 * fraction:    value of XLA_PYTHON_CLIENT_MEM_FRACTION, or NULL; JAX takes that share at once
 *              unless `preallocate` turns it off
 */
enum preallocation preallocation_of(
    const char *growth, const char *preallocate, const char *fraction);

/*
 * Whether a peak may be a preallocated share.
 *
 * whole:       the task had its GPUs to itself: colloc did not turn preallocation off then
 * peak_bytes:  on one GPU
 * total_bytes: of that GPU
 *
 * Returns true when the peak must not be learned.
 */
bool preallocation_explains(
    enum preallocation preallocation, bool whole, double peak_bytes, struct reading total_bytes);

/* The names in the log: "off", "asked"; NULL is PREALLOCATION_NOT_SET. */
const char *preallocation_name(enum preallocation preallocation);
enum preallocation preallocation_parse(const char *name);

#endif
