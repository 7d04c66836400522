/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process holds on each of its GPUs, counted allocation by allocation, and its peaks.
 *
 * Two ways to have memory are counted: blocks (cuMemAlloc and the like, by address), and physical
 * memory by handle (cuMemCreate), which lives until its handle is released and its last mapping is
 * gone. A hash table with open addressing keeps both; it takes its memory from the kernel, as it
 * runs inside a foreign program's allocator.
 *
 * Contract: the caller locks; the ledger does no I/O and no CUDA call.
 */
#ifndef COLLOC_PRELOAD_LEDGER_H
#define COLLOC_PRELOAD_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/page.h"

struct ledger_entry;

/* All zero is empty. */
struct ledger {
    struct ledger_entry *entries;
    size_t capacity, count; /* of the table; a power of two, or 0 */
    bool incomplete;        /* the sums are wrong: no memory for an entry, or an end not seen */
    struct ledger_device {
        uint64_t held_bytes, peak_bytes;
        uint64_t nccl_bytes; /* of held_bytes: physical memory that NCCL has made for itself */
    } devices[PRELOAD_DEVICES_MAX];
};

struct ledger_block {
    uint64_t bytes;
    uint64_t context; /* in which it was allocated; 0: not known */
    int device;
};

/* Counts a block. One of the same address is forgotten first: its free was not seen. */
void ledger_add_block(struct ledger *ledger, uint64_t address, const struct ledger_block *block);

/*
 * Forgets a block.
 *
 * ret_block: what it was; may be NULL.
 *
 * Returns false when it is not known.
 */
bool ledger_remove_block(struct ledger *ledger, uint64_t address, struct ledger_block *ret_block);

/* Forgets all blocks of a context: it was destroyed or reset. */
void ledger_remove_blocks_of_context(struct ledger *ledger, uint64_t context);

/* Counts physical memory with one reference. */
void ledger_add_handle(struct ledger *ledger, uint64_t handle, uint64_t bytes, int device);

/* Physical memory that is counted is NCCL's own, as long as it lives. */
void ledger_note_nccl(struct ledger *ledger, uint64_t handle);

/* Adds one reference of a handle; unknown handles (imported ones) are left alone. */
void ledger_retain_handle(struct ledger *ledger, uint64_t handle);

/*
 * Takes one reference of a handle, and forgets its memory with the last one.
 *
 * ret_device: may be NULL; of memory that was forgotten.
 *
 * Returns the bytes that were forgotten, or 0: there is another reference, or it is not known.
 */
uint64_t ledger_release_handle(struct ledger *ledger, uint64_t handle, int *ret_device);

/* Notes that a handle is mapped at an address, which is a reference. */
void ledger_map(struct ledger *ledger, uint64_t address, uint64_t bytes, uint64_t handle);

/*
 * Forgets all mappings that begin within a range.
 *
 * address, bytes: may be anything, as a program gave them; the range ends with the address space.
 * The time depends on the table, not on the range.
 *
 * Returns how many there were.
 */
size_t ledger_unmap(struct ledger *ledger, uint64_t address, uint64_t bytes);

#endif
