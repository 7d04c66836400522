/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of other processes that this one has opened (share_handle.h). As the driver does it: a
 * block that is opened again in the same context has the same address, and goes with the last
 * close; what a program asks about it is answered as of memory of cuMemAlloc.
 */
#ifndef COLLOC_PRELOAD_IMPORTS_H
#define COLLOC_PRELOAD_IMPORTS_H

#include <stdbool.h>

#include "preload/block_table.h"
#include "preload/share_handle.h"

struct process_state;

/* Chosen: a process opens some hundreds. Each takes memory only when it is used. */
enum { IMPORTS_MAX = 16384 };

/* All zero is empty; with the state's lock. */
struct imports {
    uint32_t end; /* none is used from here on */
    _Atomic uint32_t n_dead;
    struct import {
        uint32_t references; /* 0: unused */
        bool is_dead;        /* closed while a stream was captured: it goes later */
        CUcontext context;
        struct share_handle handle;
        struct block block;
    } item[IMPORTS_MAX];
};

/*
 * Opens a block of another process for the current context.
 *
 * Returns as the driver: CUDA_SUCCESS with its address; CUDA_ERROR_INVALID_CONTEXT: it is of this
 * process; CUDA_ERROR_INVALID_VALUE: it was freed, or the flags are others than the driver takes;
 * CUDA_ERROR_INVALID_HANDLE: its process has ended, is another user's or cannot be found.
 */
CUresult imports_open(const struct share_handle *handle, unsigned flags, CUdeviceptr *ret_at);

/* Closes what was opened at an address. Returns false: nothing was, the driver is to close it. */
bool imports_close(CUdeviceptr at, CUresult *ret_r);

/* Copies the open block around an address, and its context. Returns false: there is none. */
bool imports_find(
    struct process_state *state, CUdeviceptr address, struct block *ret_block, CUcontext *ret);

/* A context has ended: what it has open is closed. */
void imports_forget_context(struct process_state *state, uint64_t context);

#endif
