/* SPDX-License-Identifier: Apache-2.0 */
/* GPU memory: segments in a linear address space per unit, first fit, so that free memory can be in
 * pieces too small.
 */
#ifndef COLLOC_EMULATOR_MEMORY_H
#define COLLOC_EMULATOR_MEMORY_H

#include "emulator/world.h"

/* Sizes are rounded up to this, as the driver does. */
#define MEMORY_GRAIN (INT64_C(2) << 20)

/* Both under the world's lock. 0, or -ENOMEM when no hole is large enough. */
int memory_take(struct world *world, struct process *p, struct seat seat, int64_t bytes);

/* What `p` holds on the seat; on unit 0 of a GPU with MIG instances, on all of them. */
int64_t memory_of(const struct process *p, struct seat seat);

/* What all hold there, the foreign process included, the driver's reserve not. */
int64_t memory_used(const struct world *world, struct seat seat);

/* What a process could have at most on the unit, were it empty; and what is free of that now. */
int64_t memory_capacity(const struct world *world, struct seat seat);
int64_t memory_free(const struct world *world, struct seat seat);

#endif
