/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies blocks between the GPU and ordinary host memory at the speed of PCIe.
 *
 * A copy between a GPU and memory that is not pinned passes through the driver's own small buffers,
 * by one thread, at a fraction of that speed; and to pin memory takes longer than to copy it, with
 * the driver's locks held for every process of the machine. So there are some lanes, each a thread
 * with two small pinned buffers that were made early: while the GPU fills one, the thread empties
 * the other.
 *
 *     lane 0    piece 0 ->buffer 0   piece 8 ->buffer 1   piece 16 ->buffer 0
 *                                    buffer 0 ->host      buffer 1 ->host
 *     lane 1    piece 1 ...
 *
 * The functions call the driver directly: only the carrier uses them.
 */
#ifndef COLLOC_PRELOAD_STAGING_H
#define COLLOC_PRELOAD_STAGING_H

#include <pthread.h>
#include <stdbool.h>

#include "preload/block_table.h"
#include "preload/driver_abi.h"

/* Chosen: eight threads copied 28 to 30 GiB/s on an H200's host, more than half of PCIe 5's speed;
 * pieces that stay in the processor's cache between the two copies. 64 MiB are pinned. */
enum { STAGING_LANES = 8, STAGING_PIECE_BYTES = 4 << 20 };

/* All zero: nothing is prepared. */
struct staging {
    CUcontext context;
    struct staging_lane {
        char *buffers; /* two pieces; NULL: the lane does not exist */
        CUstream streams[2];
    } lanes[STAGING_LANES];
};

enum staging_way { STAGING_TO_HOST, STAGING_TO_GPU };

/* Makes the lanes of a context that is the caller's current one. Returns CUDA_SUCCESS, or the
 * driver's error: then there are none. */
CUresult staging_prepare(struct staging *staging, CUcontext context);

/*
 * Copies each block, or back, and waits for it.
 *
 * copy: of the host; a block's content is at its `copy_at`.
 *
 * Returns CUDA_SUCCESS or the first error of the driver.
 */
CUresult staging_copy(
    struct staging *staging, const struct blocks *blocks, char *copy, enum staging_way way);

/* Lets stream captures of the program go on while this thread calls the driver. */
void staging_leave_captures_alone(void);

#endif
