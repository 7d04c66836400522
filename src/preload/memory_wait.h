/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles an allocation that the driver refuses with CUDA_ERROR_OUT_OF_MEMORY.
 *
 * Frameworks free what they have cached and try again: their first failures pass (failure_round.h).
 * Elsewhere the first failure waits, for it usually ends the program. That includes failures of
 * cuBLAS, cuDNN and other libraries of NVIDIA in the process of a framework.
 *
 * While it waits, the daemon decides when to try again. It keeps the framework's locks, so the
 * daemon sets a time limit; after that the caller gets the true error. While a stream is being
 * captured nothing waits, and the cap is lifted.
 */
#ifndef COLLOC_PRELOAD_MEMORY_WAIT_H
#define COLLOC_PRELOAD_MEMORY_WAIT_H

#include "preload/process_state.h"
#include "preload/protocol.h"

/* What tells whether a failure is the second of its kind in this thread. */
enum failure_kind {
    FAILURE_OF_BLOCK,  /* cuMemAlloc and the like */
    FAILURE_OF_HANDLE, /* cuMemCreate: a success of one does not end the round, cuMemMap does */
    FAILURE_KINDS,
    FAILURE_FINAL = FAILURE_KINDS, /* the framework does not try again: wait at once */
};

/* One allocation, from its first try to its end. */
struct memory_wait {
    struct process_state *state;
    struct preload_page *page; /* in which it is counted as waiting */
    enum failure_kind kind;
    enum preload_reason reason;
    uint64_t bytes;
    int device;
    void *caller;   /* the code that called the driver */
    bool lifts_cap; /* the time limit passed, the daemon ended, or a capture: the driver decides */
    struct connection *daemon; /* NULL: none now */
    uint64_t since_ms;         /* 0: it has not waited */
    uint64_t deadline_ms;      /* as the daemon said last */
};

/*
 * The allocation failed, or would pass the cap. Waits as the rules above and the daemon say. A cap
 * is soft: without a daemon's FAIL it is lifted in the end.
 *
 * Returns true: try it again; false: return the error.
 */
bool memory_wait_after_failure(struct memory_wait *wait);

/* RESULT = CALL, again and again while the library waits for memory. */
#define MEMORY_WAIT_TRY(RESULT, WAIT, CALL)                                                        \
    do                                                                                             \
        (RESULT) = (CALL);                                                                         \
    while ((RESULT) == CUDA_ERROR_OUT_OF_MEMORY && memory_wait_after_failure(WAIT))

/* The allocation succeeded, or its error will be returned. */
void memory_wait_end(struct memory_wait *wait, bool succeeded);

/* The rounds of this thread end: its framework has what it wanted. */
void memory_wait_forget_failures(enum failure_kind kind);

#endif
