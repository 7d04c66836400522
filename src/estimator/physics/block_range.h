/* SPDX-License-Identifier: Apache-2.0 */
/* The repeated blocks of a network, as ranges of its tape: what tensor and pipeline parallelism
 * divide. */
#ifndef COLLOC_PHYSICS_BLOCK_RANGE_H
#define COLLOC_PHYSICS_BLOCK_RANGE_H

#include "estimator/physics/tape.h"

struct block_ranges {
    struct block_range *ranges; /* in order, without overlaps */
    size_t n, capacity;
};

/*
 * Finds the repeated blocks: the outermost blocks that stand in a list, beside others of their
 * type. A text that shows no blocks has none.
 *
 * Returns 0, and block_ranges_fini must follow; or -ENOMEM.
 */
int block_ranges_find(
    const struct tape *tape, const struct model *model, struct block_ranges *ret_ranges);
void block_ranges_fini(struct block_ranges *ranges);

/* Returns the range that holds the operation, or NULL. */
const struct block_range *block_ranges_at(const struct block_ranges *ranges, size_t op);

#endif
