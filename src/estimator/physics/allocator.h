/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of PyTorch's caching allocator: how much memory it takes from the device for a sequence
 * of requests and releases; and of XLA's.
 *
 * The rules are those of c10/cuda/CUDACachingAllocator (one stream, default settings):
 *
 *   1. Requests round up to 512 bytes.
 *   2. Requests of up to 1 MiB are cut from segments of 2 MiB, those below 10 MiB from segments of
 *      20 MiB; larger ones get a separate segment, a multiple of 2 MiB.
 *   3. The smallest free block that is large enough is used. Its rest becomes a free block if it is
 *      at least 512 bytes (small) or more than 1 MiB (large).
 *   4. Free neighbours merge within their segment.
 *   5. Segments are never returned, as long as the device has free memory, but where the program
 *      empties the cache.
 *
 * The driver decides the addresses of segments (address_space.h).
 *
 * XLA's allocator, BFC, which JAX and TensorFlow use, follows rules 3 to 5, too (set to grow):
 *
 *   1. Requests round up to 256 bytes.
 *   2. All are cut from regions. The first has 2 MiB, each further one twice as much as the one
 *      before it, and more doublings where the request needs them.
 *   3. The rest of a block becomes a free block if it is as large as the request, or has 128 MiB.
 */
#ifndef COLLOC_PHYSICS_ALLOCATOR_H
#define COLLOC_PHYSICS_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "estimator/physics/address_space.h"
#include "estimator/physics/free_list.h"

enum { ALLOCATOR_POOLS = 2 }; /* of small and of large blocks, as PyTorch has them */

enum allocator_rules { ALLOCATOR_PYTORCH, ALLOCATOR_BFC };

struct allocator {
    enum allocator_rules rules;
    int64_t region; /* BFC: bytes of the next one */
    struct block *blocks;
    size_t n_blocks, capacity;
    int spare; /* first of the unused block records, linked by `next`; BLOCK_NONE */
    struct free_list pools[ALLOCATOR_POOLS];
    struct address_space addresses;
    int64_t reserved, reserved_peak; /* taken from the device */
    int64_t active, active_peak;
    bool out_of_memory; /* this program: a free block was lost */
};

/* Bytes of one request. Chosen: sums of a few thousand do not overflow. */
#define ALLOCATOR_REQUEST_MAX ((int64_t)1 << 52)

/* Begins without blocks or segments: by PyTorch's rules, or by BFC's. */
void allocator_init(struct allocator *allocator);
void allocator_init_bfc(struct allocator *allocator);

/* Adds a segment of exactly these bytes, as a free block of large ones: of a pool whose state is
 * known. BFC goes on from the size of the pool. Returns 0, or the errors of allocator_take. */
int allocator_reserve(struct allocator *allocator, int64_t bytes);

/* Releases all blocks and segments. */
void allocator_fini(struct allocator *allocator);

/* Allocates a block of at least `bytes`. Returns its handle (0 or more); -ENOMEM (this program has
 * no memory); -ERANGE (no device is that large). */
int allocator_take(struct allocator *allocator, int64_t bytes);

/* Returns the request for an estimated size: -1, which is refused with -ERANGE, where no device is
 * that large or the size is NaN. */
static inline int64_t allocator_request(double bytes)
{
    return bytes < (double)ALLOCATOR_REQUEST_MAX ? (int64_t)bytes : -1;
}

/* Frees a block. The handle -1 is allowed. If this program has no memory for that, a later request
 * returns -ENOMEM. */
void allocator_release(struct allocator *allocator, int handle);

/* Allocates a block and frees it at once, as a kernel does with its workspace. The free blocks are
 * the same afterwards, but for a segment that it may need. Returns 0, or the errors of
 * allocator_take. */
int allocator_touch(struct allocator *allocator, int64_t bytes);

/* Returns segments without a block in use to the device, as torch.cuda.empty_cache does. */
void allocator_empty_cache(struct allocator *allocator);

#endif
