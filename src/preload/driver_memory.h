/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the driver takes for itself in a call: the code of a kernel, which it loads when the
 * kernel is first asked for or launched, and what a graph, a stream or an event needs. So on a full
 * GPU such a call fails long after the context was made; cuDNN then reports
 * CUDNN_STATUS_INTERNAL_ERROR (seen on driver 580). It waits like an allocation (memory_wait.h). A
 * call that failed for want of memory has done nothing, so it can be made again.
 */
#ifndef COLLOC_PRELOAD_DRIVER_MEMORY_H
#define COLLOC_PRELOAD_DRIVER_MEMORY_H

#include "preload/allocation.h"

/* The code of one library: cuDNN's largest takes about as much on an H100. */
#define DRIVER_MEMORY_BYTES (UINT64_C(256) << 20)

/* Returns whether the library takes part in the failure `r`; then `wait` is filled in. */
static inline bool driver_memory_waits(CUresult r, struct memory_wait *wait)
{
    if (__builtin_expect(r != CUDA_ERROR_OUT_OF_MEMORY, 1) ||
        !allocation_begin(
            wait, FAILURE_FINAL, DRIVER_MEMORY_BYTES, allocation_current_device(), NULL))
        return false;
    wait->reason = PRELOAD_NEEDS_CONTEXT;
    return true;
}

/* RESULT = CALL, again and again while the library waits for memory. */
#define DRIVER_MEMORY_TRY(RESULT, CALL)                                                            \
    do {                                                                                           \
        struct memory_wait wait;                                                                   \
        (RESULT) = (CALL);                                                                         \
        if (!driver_memory_waits(RESULT, &wait))                                                   \
            break;                                                                                 \
        if (memory_wait_after_failure(&wait))                                                      \
            MEMORY_WAIT_TRY(RESULT, &wait, CALL);                                                  \
        memory_wait_end(&wait, (RESULT) == CUDA_SUCCESS);                                          \
    } while (0)

/* The body of a function that is such a call. */
#define DRIVER_MEMORY_CALL(CALL)                                                                   \
    do {                                                                                           \
        CUresult r;                                                                                \
        DRIVER_MEMORY_TRY(r, CALL);                                                                \
        return r;                                                                                  \
    } while (0)

#endif
