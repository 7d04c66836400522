/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's calls about blocks, in a process whose memory is carried (carrier.h): its allocations
 * become blocks, and what it asks about a block is answered as of memory of cuMemAlloc.
 */
#ifndef COLLOC_PRELOAD_CARRIED_MEMORY_H
#define COLLOC_PRELOAD_CARRIED_MEMORY_H

#include "preload/process_state.h"

/*
 * Allocates a block.
 *
 * ret_r: the result of the allocation, with *ret_at where that is CUDA_SUCCESS.
 *
 * Returns false: the driver is to allocate; the process or this allocation cannot have a block.
 */
bool carried_allocate(
    struct process_state *state, int device, uint64_t bytes, CUdeviceptr *ret_at, CUresult *ret_r);

/* Waits for the GPU's work and frees the block at an address, as cuMemFree does. Returns false:
 * there is none, the driver is to free it. */
bool carried_free(CUdeviceptr at, CUresult *ret_r);

/* The memory behind a range of addresses is used by another process or device under another name:
 * blocks there stay where they are. */
void carried_keep(CUdeviceptr at, uint64_t bytes);

/* A device may use the memory of this context directly, which of memory of cuMemAlloc is so then.
 */
void carried_allow_peer(CUcontext context, int device);

/* A block as the program sees it: as memory of cuMemAlloc, or of cuIpcOpenMemHandle. */
struct carried_answer {
    struct block block;
    CUcontext context; /* that memory would belong to */
    bool is_own;       /* false: another process's, which this one has opened (imports.h) */
};

/* Finds the living block around an address. Returns false: there is none. */
bool carried_find(CUdeviceptr address, struct carried_answer *ret_answer);

/* A context has ended: blocks of it are freed, and there are no more of them in this process. */
void carried_forget_context(struct process_state *state, uint64_t context);

#endif
