/* SPDX-License-Identifier: Apache-2.0 */
/* What every call that takes GPU memory begins with, whatever the memory is for. */
#ifndef COLLOC_PRELOAD_ALLOCATION_H
#define COLLOC_PRELOAD_ALLOCATION_H

#include "preload/memory_wait.h"

/* Returns the GPU of the current context, or -1. */
int allocation_current_device(void);

/* Returns the current context as a number, or 0. */
uint64_t allocation_current_context(void);

/*
 * Fills in `wait` for an allocation of `bytes` of the GPU `device`. `caller`: the code that called
 * the driver (CALLER).
 *
 * Returns whether the library takes part: it knows the process and the GPU.
 */
bool allocation_begin(
    struct memory_wait *wait, enum failure_kind kind, uint64_t bytes, int device, void *caller);

/* In a function that stands before the driver's. */
#define CALLER __builtin_return_address(0)

#endif
