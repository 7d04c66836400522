/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another GPU for the copy of a process's GPU memory. The daemon's helper has taken it
 * and hands over the driver's shareable handle. This process may see its own GPU only, and maps the
 * memory for that all the same. Once it is mapped it belongs to this process: it ends with it,
 * whatever becomes of the helper and the daemon.
 */
#ifndef COLLOC_PRELOAD_NEIGHBOUR_ROOM_H
#define COLLOC_PRELOAD_NEIGHBOUR_ROOM_H

#include <stdbool.h>

#include "preload/block_mapping.h"

/* All zero: there is none. */
struct neighbour_room {
    CUdeviceptr at; /* for the blocks' GPU */
    size_t bytes;
    CUmemGenericAllocationHandle handle;
};

/* Maps memory for `device`. fd: the handle's; the caller's. Returns the driver's first error, after
 * which the room is to be closed too. */
CUresult neighbour_room_open(struct neighbour_room *room, int fd, size_t bytes, CUdevice device);

/* Copies all blocks to their places in the room, or back, and waits for it. The copy engines of the
 * GPUs do all of it: nothing is staged. Returns the driver's first error. */
CUresult neighbour_room_copy(
    const struct neighbour_room *room, CUstream stream, const struct blocks *blocks, bool is_back);

/* Unmaps and releases it. None is fine. */
void neighbour_room_close(struct neighbour_room *room);

#endif
