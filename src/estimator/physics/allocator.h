/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch's caching allocator would take from the device for a sequence of requests and
 * releases.
 *
 * The rules are those of c10/cuda/CUDACachingAllocator (one stream, default settings), written
 * anew: requests round up to 512 bytes; up to 1 MiB they are carved from segments of 2 MiB, below
 * 10 MiB from segments of 20 MiB, above they get a segment of their own, in steps of 2 MiB. The
 * smallest free block that is large enough serves; what is left of it is split off from 512 bytes
 * on (small) or when it is more than 1 MiB (large). Free neighbours merge within their segment.
 * Segments are never given back, as on a device with room; the driver says where they lie
 * (address_space.h).
 *
 * Time per call is logarithmic in the free blocks, but for moving their list; memory is linear in
 * the blocks.
 */
#ifndef COLLOC_PHYSICS_ALLOCATOR_H
#define COLLOC_PHYSICS_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

#include "estimator/physics/address_space.h"

enum { ALLOCATOR_POOLS = 2 };

struct block {
    int64_t size;
    int64_t address;    /* of blocks of equal size the lowest is taken */
    int previous, next; /* neighbours in the segment; -1 at its ends */
    uint8_t pool;
    uint8_t used;
};

struct free_list {
    int *blocks; /* by size, then address */
    size_t n, capacity;
};

struct allocator {
    struct block *blocks;
    size_t n_blocks, capacity;
    int spare; /* first of the records that may be used again, linked by `next`; -1 */
    struct free_list pools[ALLOCATOR_POOLS];
    struct address_space addresses;
    int64_t reserved; /* taken from the device; never shrinks */
    int64_t active, active_peak;
};

#define ALLOCATOR_REQUEST_MAX ((int64_t)1 << 52)

void allocator_init(struct allocator *allocator);
void allocator_fini(struct allocator *allocator);

/* The handle (0 or more) of a block of at least `bytes`. -ENOMEM (of this program), -ERANGE (no
 * device is so large). */
int allocator_take(struct allocator *allocator, int64_t bytes);

/* Takes a handle back; -1 is none. */
void allocator_release(struct allocator *allocator, int handle);

/* What a request is rounded up to. */
int64_t allocator_round(int64_t bytes);

#endif
