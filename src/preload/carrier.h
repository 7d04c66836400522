/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the GPU memory of the process off its GPU and puts it back, at the speed of PCIe and also
 * for a client of MPS (docs/carrier.md).
 *
 * The library answers large allocations with blocks (block_table.h), whose memory it can take away
 * without their addresses. A thread of the library carries out what the daemon orders in the page:
 *
 *     AWAY   wait until no call is in the driver and the GPU has done its work   WAITING
 *            copy all blocks to another place (copy_place.h)                     COPYING
 *            take away their memory                                              RELEASING
 *                                                                                IS_AWAY
 *     HERE   put memory behind each, copy back                                   RETURNING
 *                                                                                IS_HERE
 *     TO_HOST  move a copy on a neighbour GPU to the host                      IS_AWAY
 *
 * Contract:
 * 1. The daemon closes the gate before it orders AWAY, and opens it after HERE was done.
 * 2. An order is carried out once; `carry_done` is then its number, and `carry_why` has the reason
 *    if it failed. Before RELEASING a failure leaves everything as it was; a way back for which the
 *    GPU has too little memory leaves the copy as it was.
 * 3. The daemon may end at any time: a copy that was begun is finished, and the next page says
 *    where the memory is. While it is not here the library keeps the gate of a new page closed.
 */
#ifndef COLLOC_PRELOAD_CARRIER_H
#define COLLOC_PRELOAD_CARRIER_H

#include <stdatomic.h>

#include "preload/block_mapping.h"
#include "preload/block_table.h"
#include "preload/copy_place.h"
#include "preload/page.h"
#include "preload/staging.h"

struct process_state;

/* Of a process; all zero at first. */
struct carrier {
    _Atomic uint32_t is_decided;  /* the next four are known */
    enum preload_carry_why never; /* PRELOAD_CARRY_CAN: the process may have blocks */
    int device;
    CUcontext context; /* the primary one of the device */
    struct mapping_traits traits;

    struct blocks
        blocks; /* with the state's lock; the thread needs none while no call is in flight */
    _Atomic uint32_t n_dead;

    _Atomic uint32_t has_thread;
    struct staging staging;
    struct copy_place place; /* of the copy, while the blocks are away */
    struct kept_room kept;   /* the carrier's thread maps and unmaps it */

    /* As in the page; a new daemon's page gets them. */
    _Atomic uint32_t state, why, lies;
    _Atomic int32_t error;
    _Atomic uint64_t out_us, in_us;
};

/* Begins the thread, once. The process has a block. */
void carrier_begin(struct process_state *state);

/* Copies what the daemon has to know to a page; with the lock. */
void carrier_publish(struct process_state *state, struct preload_page *page);

#endif
