/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of this process that others open (share_handle.h): their handles, and a thread that hands
 * out their memory. It is begun with the first handle.
 *
 * Contract:
 * 1. Two handles of a block are equal, and that of another block never is, also at the same
 *    address: programs compare them.
 * 2. A block whose handle was given stays on its GPU.
 * 3. A process of another user, or without the whole handle, gets nothing.
 * 4. A block that was freed can no longer be opened. Whoever had opened it keeps its memory.
 */
#ifndef COLLOC_PRELOAD_EXPORTS_H
#define COLLOC_PRELOAD_EXPORTS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "preload/share_handle.h"

struct process_state;

/* Of a process; all zero at first. With the state's lock, but for the thread's own part. */
struct exports {
    _Atomic uint32_t has_begun; /* `key` is known, and the thread runs */
    struct share_key key;
    uint64_t serial; /* the last one */
    int listener;
};

/*
 * Gives the handle of the block around an address, which is kept from then on.
 *
 * ret_r: CUDA_SUCCESS with *ret_handle; CUDA_ERROR_NOT_SUPPORTED: there can be no socket.
 *
 * Returns false: no block is there, the driver is to answer.
 */
bool exports_handle(CUdeviceptr at, struct share_handle *ret_handle, CUresult *ret_r);

/* Returns whether a handle is of this process. */
bool exports_made(const struct process_state *state, const struct share_handle *handle);

#endif
