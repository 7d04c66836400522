/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the content of a process's blocks lies while they are away from its GPU (carrier.h):
 *
 *     OWN         host memory of the process itself (host_room.h)
 *     POOL        host memory of the daemon's: a file that was made and touched for this process
 *     NEIGHBOUR   free memory of another GPU, which the daemon's helper has taken and hands over
 *                 (neighbour_room.h)
 *
 * What is handed over comes with a descriptor (PRELOAD_ROOM in protocol.h) before the order that
 * uses it.
 *
 *     room    bytes 6 MiB  | block 1: 4 MiB | block 2: 2 MiB |      copy_at 0 and 4 MiB
 *
 * A copy has the same form in each place, so that it can move from one to another.
 *
 * The file of a pool stays mapped while the blocks are on their GPU again, for their next way out:
 * its pages are in the page tables then. It is of this process alone, so what is left in it is
 * read by no other process.
 *
 * Contract: the caller is the carrier's thread, with the context of the blocks.
 */
#ifndef COLLOC_PRELOAD_COPY_PLACE_H
#define COLLOC_PRELOAD_COPY_PLACE_H

#include <stdatomic.h>

#include "preload/block_mapping.h"
#include "preload/host_room.h"
#include "preload/neighbour_room.h"
#include "preload/page.h"
#include "preload/staging.h"

/* What the daemon has handed over. */
struct copy_room {
    enum preload_place place; /* PRELOAD_PLACE_OWN: nothing */
    int fd;                   /* closed by copy_room_drop */
    uint64_t bytes, offset;   /* in the file of a pool */
};

/* The pool's file that is mapped. All zero: none. */
struct kept_room {
    struct host_room room;
    _Atomic uint32_t is_recalled; /* the daemon wants it back, or is another one by now */
};

/* All zero: there is no copy. */
struct copy_place {
    enum preload_place kind;
    uint64_t bytes; /* of the copy; 0: there is none */

    char *host; /* the copy, of a place on the host: in `own`, or in the kept room */
    struct host_room own;
    struct neighbour_room near; /* of a place on a GPU */
};

/* Closes the room's descriptor, and forgets it. */
void copy_room_drop(struct copy_room *room);

/* Unmaps it. */
void kept_room_drop(struct kept_room *kept);

/*
 * Makes a place for all blocks that can be taken away, and says where in it each goes (`copy_at`).
 *
 * device:    of the blocks
 * room:      used, or not: the caller drops it
 * kept:      used for a pool when `room` is none of it; else replaced by that
 * ret_error: the driver's, with PRELOAD_CARRY_DRIVER
 *
 * Returns PRELOAD_CARRY_CAN; PRELOAD_CARRY_NO_HOST_MEMORY; PRELOAD_CARRY_NO_ROOM: what was handed
 * over is not for this place, or is too small; PRELOAD_CARRY_DRIVER: the driver does not map it.
 */
enum preload_carry_why copy_place_open(struct copy_place *place, enum preload_place kind,
    const struct copy_room *room, struct kept_room *kept, CUdevice device, struct blocks *blocks,
    int *ret_error);

/* Copy all blocks to the place, or back, and wait for it. Return the driver's first error. */
CUresult copy_place_store(
    struct copy_place *place, struct staging *staging, const struct blocks *blocks);
CUresult copy_place_load(
    struct copy_place *place, struct staging *staging, const struct blocks *blocks);

/* Copies what is on a neighbour to a place on the host that was opened for the same blocks. */
CUresult copy_place_move(
    const struct copy_place *from, struct copy_place *to, struct staging *staging);

/* Gives the memory back. A place that is none is fine. */
void copy_place_close(struct copy_place *place);

#endif
