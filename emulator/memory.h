/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU memory of the emulated GPUs. By default a process can allocate free memory wherever it lies,
 * as on a real GPU (docs/measured/memory-pieces.md). With the constant linear_memory a unit is a
 * line, first fit, in which free memory in pieces can be too little.
 *
 * Contract: all functions are called between world_enter and world_leave.
 */
#ifndef COLLOC_EMULATOR_MEMORY_H
#define COLLOC_EMULATOR_MEMORY_H

#include "emulator/world.h"

/* Sizes are rounded up to this, as the driver does. */
#define MEMORY_GRAIN (INT64_C(2) << 20)

/*
 * Gives the process one more segment on the seat, of `bytes` rounded up to MEMORY_GRAIN.
 *
 * Returns 0, or -ENOMEM: not so much is free (in one piece, where memory is linear), the process
 * would be over its limit, or it has SEGMENTS_MAX segments.
 */
int memory_take(struct world *world, struct process *p, struct seat seat, int64_t bytes);

/* Returns the bytes that `p` holds on the seat; on unit 0 of a GPU with MIG instances, on all of
 * them. */
int64_t memory_of(const struct process *p, struct seat seat);

/* Returns the bytes that all processes hold there, the foreign one included, the driver's reserve
 * not. Of a MIG compute instance it is what is in use of its GPU instance's memory. */
int64_t memory_used(const struct world *world, struct seat seat);

/* Returns the bytes that processes could have at most on the unit, were it empty. */
int64_t memory_capacity(const struct world *world, struct seat seat);

/* Returns the bytes of the capacity that are free now. */
int64_t memory_free(const struct world *world, struct seat seat);

#endif
