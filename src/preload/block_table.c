/* SPDX-License-Identifier: Apache-2.0 */
/* The table of blocks: an array sorted by address. A framework has some hundreds of blocks and adds
 * one now and then, so that moving the rest of the array costs less than a tree. */
#include "preload/block_table.h"

#include <string.h>
#include <sys/mman.h>

enum { CAPACITY_FIRST = 256 };

/* Returns the place of the first block that begins after `address`. */
static size_t place_after(const struct blocks *blocks, uint64_t address)
{
    size_t low = 0, high = blocks->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (blocks->item[middle].at > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool grow_table(struct blocks *blocks)
{
    size_t capacity = blocks->capacity ? blocks->capacity * 2 : CAPACITY_FIRST;
    void *room = mmap(NULL, capacity * sizeof(struct block), PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return false;
    if (blocks->capacity) {
        memcpy(room, blocks->item, blocks->count * sizeof(struct block));
        munmap(blocks->item, blocks->capacity * sizeof(struct block));
    }
    blocks->item = room;
    blocks->capacity = capacity;
    return true;
}

bool blocks_add(struct blocks *blocks, const struct block *block)
{
    if (blocks->count == blocks->capacity && !grow_table(blocks))
        return false;
    size_t place = place_after(blocks, block->at);
    memmove(&blocks->item[place + 1], &blocks->item[place],
        (blocks->count - place) * sizeof(struct block));
    blocks->item[place] = *block;
    blocks->count++;
    blocks->mapped_bytes += block->is_kept ? 0 : block->mapped_bytes;
    return true;
}

/* Also a dead one. */
static struct block *find_any(const struct blocks *blocks, uint64_t at)
{
    size_t place = place_after(blocks, at);
    return place && blocks->item[place - 1].at == at ? &blocks->item[place - 1] : NULL;
}

bool blocks_remove(struct blocks *blocks, uint64_t at, struct block *ret_block)
{
    struct block *block = find_any(blocks, at);
    if (!block)
        return false;
    *ret_block = *block;
    blocks->mapped_bytes -= block->is_kept ? 0 : block->mapped_bytes;
    blocks->count--;
    size_t place = (size_t)(block - blocks->item);
    memmove(block, block + 1, (blocks->count - place) * sizeof(struct block));
    return true;
}

void blocks_keep(struct blocks *blocks, uint64_t at, uint64_t bytes)
{
    for (size_t i = 0; i < blocks->count; i++) {
        struct block *block = &blocks->item[i];
        bool is_before = block->at + block->mapped_bytes <= at;
        bool is_after = at < block->at && block->at - at >= bytes;
        if (block->is_kept || is_before || is_after)
            continue;
        block->is_kept = true;
        blocks->mapped_bytes -= block->mapped_bytes;
    }
}

struct block *blocks_find(struct blocks *blocks, uint64_t at)
{
    struct block *block = find_any(blocks, at);
    return block && !block->is_dead ? block : NULL;
}

struct block *blocks_around(const struct blocks *blocks, uint64_t address)
{
    size_t place = place_after(blocks, address);
    struct block *block = place ? &blocks->item[place - 1] : NULL;
    return block && !block->is_dead && address - block->at < block->bytes ? block : NULL;
}

const struct block *blocks_shared(const struct blocks *blocks, uint64_t serial)
{
    for (size_t i = 0; i < blocks->count && serial; i++)
        if (blocks->item[i].serial == serial && !blocks->item[i].is_dead)
            return &blocks->item[i];
    return NULL;
}
