/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU memory by the driver's virtual memory management: an address range, and physical memory that
 * is put behind it and taken away. Each function either does all or leaves everything as before.
 *
 * The functions call the driver directly: the caller has entered the gate, or is the carrier.
 */
#ifndef COLLOC_PRELOAD_BLOCK_MAPPING_H
#define COLLOC_PRELOAD_BLOCK_MAPPING_H

#include <stdbool.h>

#include "preload/block_table.h"
#include "preload/driver_abi.h"

/* What the GPU of this process can. */
struct mapping_traits {
    uint64_t granularity; /* of mapped memory, in bytes; 0: the GPU or the driver cannot map, or
                             not share what is mapped */
    uint32_t peers;       /* a bit for each other GPU that uses blocks directly, by its ordinal */
    bool has_rdma;        /* mapped memory can be read by other devices, as that of cuMemAlloc */
};

/* Queries the driver. */
struct mapping_traits mapping_query(CUdevice device);

/*
 * Reserves an address range and puts memory behind it.
 *
 * bytes: that the program asked for.
 *
 * Returns CUDA_SUCCESS with the block; or the driver's error, which is CUDA_ERROR_OUT_OF_MEMORY if
 * the GPU has too little.
 */
CUresult mapping_create(
    const struct mapping_traits *traits, CUdevice device, uint64_t bytes, struct block *ret_block);

/* Takes the memory away, and ends the range. The GPU no longer uses it. If the driver refuses, the
 * block is as before, or has no memory any more (`handle` 0). */
CUresult mapping_destroy(struct block *block);

/* Put memory behind the range of a block, which has none, and take it away. */
CUresult mapping_fill(const struct mapping_traits *traits, CUdevice device, struct block *block);
CUresult mapping_empty(struct block *block);

/* Makes a descriptor of a block's memory for another process. Returns the driver's result. */
CUresult mapping_export(const struct block *block, int *ret_memory);

/*
 * Maps memory of another process for a device of this one, and for its own device where that is
 * another.
 *
 * memory:              its descriptor; the caller closes it
 * mapped_bytes, bytes: of the block there
 *
 * Returns CUDA_SUCCESS with a block for mapping_destroy; or the driver's error.
 */
CUresult mapping_import(
    CUdevice device, int memory, uint64_t mapped_bytes, uint64_t bytes, struct block *ret_block);

/* Lets other GPUs use a block directly, as the traits say. */
CUresult mapping_allow_peers(
    const struct mapping_traits *traits, CUdevice device, const struct block *block);

#endif
