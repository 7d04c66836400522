/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a process: ranges of GPU addresses that the library has mapped itself in answer to
 * cuMemAlloc, so that the memory behind them can be taken away and given back (carrier.h).
 *
 *     address        mapped   asked for   memory     copy
 *     0x7f00000000   4 MiB    3 MiB       handle 7   -            here
 *     0x7f00400000   2 MiB    2 MiB       -          at 4 MiB     away, in the host's copy
 *
 * A table sorted by address: programs ask about any address within a block. Its memory comes from
 * the kernel, as it runs inside a foreign program's allocator.
 *
 * Contract: the caller locks; the table does no I/O and no CUDA call.
 */
#ifndef COLLOC_PRELOAD_BLOCK_TABLE_H
#define COLLOC_PRELOAD_BLOCK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The physical memory behind a block, or where its content is instead. */
struct block {
    uint64_t at;
    uint64_t mapped_bytes; /* a multiple of the GPU's granularity */
    uint64_t bytes;        /* that the program asked for */
    uint64_t handle;       /* of the memory; 0: there is none now */
    uint64_t copy_at;      /* offset in the host's copy */
    uint64_t serial;       /* of the handle by which other processes open it; 0: it has none */
    bool is_kept;          /* another process or device has its memory: it stays */
    bool is_dead; /* the program has freed it; its memory goes when no stream is captured */
};

/* All zero is empty. */
struct blocks {
    struct block *item;
    size_t count, capacity;
    uint64_t mapped_bytes; /* of all blocks that can be taken away */
};

/* Adds a block at an address that no other block covers. Returns false when memory is out. */
bool blocks_add(struct blocks *blocks, const struct block *block);

/* Forgets the block that begins at `at`. Returns false when there is none. */
bool blocks_remove(struct blocks *blocks, uint64_t at, struct block *ret_block);

/* Marks the blocks in a range of addresses, which then stay. `mapped_bytes` is without them. */
void blocks_keep(struct blocks *blocks, uint64_t at, uint64_t bytes);

/* Returns the living block that begins at `at`; NULL: there is none. */
struct block *blocks_find(struct blocks *blocks, uint64_t at);

/* Returns the living block that the program would say `address` is in; NULL: there is none. */
struct block *blocks_around(const struct blocks *blocks, uint64_t address);

/* Returns the living block with a handle's serial number; NULL: there is none. */
const struct block *blocks_shared(const struct blocks *blocks, uint64_t serial);

#endif
