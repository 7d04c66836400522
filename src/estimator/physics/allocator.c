/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the caching allocators (allocator.h), over a table of blocks and a list of free
 * ones for each pool (free_list.h).
 *
 * Example: an empty allocator gets a request of 3 MiB. That is a large one below 10 MiB, so a
 * segment of 20 MiB is taken from the device and split: 3 MiB are used, 17 MiB are free. The next
 * request is 12 MiB: the free block is large enough and is split again, 5 MiB are left. Both are
 * released, and the three blocks merge. Reserved stays at 20 MiB, the peak in use was 15 MiB.
 */
#include "estimator/physics/allocator.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/units.h"

enum { SMALL, LARGE }; /* the two pools */

/* c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc,
 * kLargeBuffer, kRoundLarge: in this order, in bytes. */
static const int64_t round_to = 512;
static const int64_t small_most = MIB, small_segment = 2 * MIB;
static const int64_t own_segment_from = 10 * MIB, large_segment = 20 * MIB, segment_step = 2 * MIB;

/* xla/tsl/framework/bfc_allocator: kMinAllocationSize, the first region, and
 * kMaxInternalFragmentation, in bytes. */
static const int64_t bfc_round_to = 256, bfc_first_region = 2 * MIB, bfc_rest_most = 128 * MIB;

enum { CAPACITY_FIRST = 256 }; /* chosen: block records that are allocated first */

void allocator_init(struct allocator *allocator)
{
    *allocator = (struct allocator){.spare = BLOCK_NONE};
}

void allocator_init_bfc(struct allocator *allocator)
{
    *allocator = (struct allocator){
        .rules = ALLOCATOR_BFC, .region = bfc_first_region, .spare = BLOCK_NONE};
}

void allocator_fini(struct allocator *allocator)
{
    free(allocator->blocks);
    for (int i = 0; i < ALLOCATOR_POOLS; i++)
        free_list_fini(&allocator->pools[i]);
    allocator_init(allocator);
}

/* step: a power of two */
static int64_t round_up(int64_t bytes, int64_t step)
{
    return bytes <= step ? step : (bytes + step - 1) & -step;
}

/* A region that had to be doubled for a request is not doubled again for the next one. */
static int64_t region_size(struct allocator *allocator, int64_t size)
{
    int64_t region = allocator->region;
    while (region < size)
        region *= 2;
    allocator->region = region > allocator->region ? region : 2 * region;
    return region;
}

static int pool_of(const struct allocator *allocator, int64_t size)
{
    return allocator->rules == ALLOCATOR_PYTORCH && size <= small_most ? SMALL : LARGE;
}

static int64_t segment_size(struct allocator *allocator, int64_t size)
{
    if (allocator->rules == ALLOCATOR_BFC)
        return region_size(allocator, size);
    if (size <= small_most)
        return small_segment;
    return size < own_segment_from ? large_segment
                                   : (size + segment_step - 1) / segment_step * segment_step;
}

static struct free_list *list_of(struct allocator *allocator, int handle)
{
    return &allocator->pools[allocator->blocks[handle].pool];
}

/* A free block that finds no place in its list stays in use, and the next request fails. */
static void note_added(struct allocator *allocator, int handle, int r)
{
    allocator->blocks[handle].used = r < 0;
    allocator->out_of_memory |= r < 0;
}

static void add_free(struct allocator *allocator, int handle)
{
    note_added(
        allocator, handle, free_list_add(list_of(allocator, handle), allocator->blocks, handle));
}

static int grow_blocks(struct allocator *allocator)
{
    size_t capacity = 2 * allocator->capacity + CAPACITY_FIRST;
    struct block *blocks = reallocarray(allocator->blocks, capacity, sizeof *blocks);
    if (!blocks)
        return -ENOMEM;
    allocator->blocks = blocks;
    allocator->capacity = capacity;
    return 0;
}

static int new_record(struct allocator *allocator, int *ret_handle)
{
    if (allocator->spare != BLOCK_NONE) {
        *ret_handle = allocator->spare;
        allocator->spare = allocator->blocks[allocator->spare].next;
        return 0;
    }
    int r = allocator->n_blocks == allocator->capacity ? grow_blocks(allocator) : 0;
    if (r < 0)
        return r;
    *ret_handle = (int)allocator->n_blocks++;
    return 0;
}

static void drop_record(struct allocator *allocator, int handle)
{
    allocator->blocks[handle].size = 0;
    allocator->blocks[handle].next = allocator->spare;
    allocator->spare = handle;
}

/* Makes a segment one block, which is in no list yet. */
static int add_segment(struct allocator *allocator, int64_t segment, int pool, int *ret_handle)
{
    int r = new_record(allocator, ret_handle);
    if (r < 0)
        return r;
    allocator->blocks[*ret_handle] = (struct block){.size = segment,
        .previous = BLOCK_NONE,
        .next = BLOCK_NONE,
        .address = address_space_place(&allocator->addresses, segment),
        .pool = (uint8_t)pool};
    allocator->reserved += segment;
    if (allocator->reserved > allocator->reserved_peak)
        allocator->reserved_peak = allocator->reserved;
    return 0;
}

/* Tests whether what a request of `size` bytes leaves of a block becomes a block. */
static bool is_worth_a_block(const struct allocator *allocator, int handle, int64_t size)
{
    int64_t left = allocator->blocks[handle].size - size;
    if (allocator->rules == ALLOCATOR_BFC)
        return left > 0 && (left >= size || left >= bfc_rest_most);
    return allocator->blocks[handle].pool == SMALL ? left >= round_to : left > small_most;
}

/* Makes a block of the first `size` bytes of the free block at the head of a class, which stays in
 * the list with the rest. */
static int cut_block(
    struct allocator *allocator, struct size_class *class, int64_t size, int *ret_front)
{
    int r = new_record(allocator, ret_front), handle = class->lowest;
    if (r < 0)
        return r;
    struct block *block = &allocator->blocks[handle], *front = &allocator->blocks[*ret_front];
    *front = *block;
    front->size = size;
    front->next = handle;
    front->used = 1;
    if (block->previous != BLOCK_NONE)
        allocator->blocks[block->previous].next = *ret_front;
    block->previous = *ret_front;
    note_added(allocator, handle,
        free_list_resize(list_of(allocator, handle), allocator->blocks, class, handle,
            block->address + size, block->size - size));
    return 0;
}

static int64_t round_request(const struct allocator *allocator, int64_t bytes)
{
    return round_up(bytes, allocator->rules == ALLOCATOR_BFC ? bfc_round_to : round_to);
}

static bool is_in_range(const struct allocator *allocator, int64_t bytes)
{
    return bytes >= 0 && bytes <= ALLOCATOR_REQUEST_MAX &&
           allocator->reserved <= ALLOCATOR_REQUEST_MAX;
}

/* Finds the class of the smallest free blocks that serve a request; adds a segment if there is
 * none. */
static int find_free(struct allocator *allocator, int64_t size, struct size_class **ret_class)
{
    int pool = pool_of(allocator, size), handle;
    const struct free_list *list = &allocator->pools[pool];
    *ret_class = free_list_find(list, size);
    if (*ret_class)
        return 0;
    int r = add_segment(allocator, segment_size(allocator, size), pool, &handle);
    if (r < 0)
        return r;
    add_free(allocator, handle);
    *ret_class = free_list_find(list, size);
    return *ret_class ? 0 : -ENOMEM;
}

/* Regions double, so the next one is as large as all of them together, down to a power of two. */
static void follow_pool(struct allocator *allocator)
{
    while (2 * allocator->region <= allocator->reserved)
        allocator->region *= 2;
}

int allocator_reserve(struct allocator *allocator, int64_t bytes)
{
    int handle;
    if (!is_in_range(allocator, bytes))
        return -ERANGE;
    int r = add_segment(allocator, round_request(allocator, bytes), LARGE, &handle);
    if (r < 0)
        return r;
    add_free(allocator, handle);
    if (allocator->rules == ALLOCATOR_BFC)
        follow_pool(allocator);
    return 0;
}

static void count_active(struct allocator *allocator, int64_t size)
{
    allocator->active += size;
    if (allocator->active > allocator->active_peak)
        allocator->active_peak = allocator->active;
}

int allocator_take(struct allocator *allocator, int64_t bytes)
{
    if (!is_in_range(allocator, bytes))
        return -ERANGE;
    int64_t size = round_request(allocator, bytes);
    struct size_class *class;
    int r = allocator->out_of_memory ? -ENOMEM : find_free(allocator, size, &class);
    if (r < 0)
        return r;
    int handle = class->lowest;
    if (is_worth_a_block(allocator, handle, size))
        r = cut_block(allocator, class, size, &handle);
    else
        free_list_take(list_of(allocator, handle), allocator->blocks, class);
    if (r < 0)
        return r;
    allocator->blocks[handle].used = 1;
    count_active(allocator, allocator->blocks[handle].size);
    return handle;
}

int allocator_touch(struct allocator *allocator, int64_t bytes)
{
    if (!is_in_range(allocator, bytes))
        return -ERANGE;
    int64_t size = round_request(allocator, bytes);
    struct size_class *class;
    int r = allocator->out_of_memory ? -ENOMEM : find_free(allocator, size, &class);
    if (r < 0)
        return r;
    int64_t used = is_worth_a_block(allocator, class->lowest, size) ? size : class->size;
    count_active(allocator, used);
    allocator->active -= used;
    return 0;
}

/* Takes a block out of its segment, which a neighbour gets. */
static void unlink_block(struct allocator *allocator, int handle)
{
    const struct block *block = &allocator->blocks[handle];
    if (block->previous != BLOCK_NONE)
        allocator->blocks[block->previous].next = block->next;
    if (block->next != BLOCK_NONE)
        allocator->blocks[block->next].previous = block->previous;
    drop_record(allocator, handle);
}

static bool is_free(const struct allocator *allocator, int handle)
{
    return handle != BLOCK_NONE && !allocator->blocks[handle].used;
}

/* Gives a block to its free neighbour `to`, which then begins at `address`. */
static void give_block(struct allocator *allocator, int handle, int to, int64_t address)
{
    struct free_list *list = list_of(allocator, to);
    const struct block *block = &allocator->blocks[to];
    int64_t size = block->size + allocator->blocks[handle].size;
    unlink_block(allocator, handle);
    note_added(allocator, to,
        free_list_resize(
            list, allocator->blocks, free_list_find(list, block->size), to, address, size));
}

/* A free neighbour gets the block; between two, the first one gets both. */
void allocator_release(struct allocator *allocator, int handle)
{
    if (handle == BLOCK_NONE)
        return;
    struct block *blocks = allocator->blocks, *block = &blocks[handle];
    int previous = block->previous, next = block->next;
    bool joins_previous = is_free(allocator, previous), joins_next = is_free(allocator, next);
    allocator->active -= block->size;
    if (joins_previous && joins_next) {
        free_list_remove(list_of(allocator, next), blocks, next);
        block->size += blocks[next].size;
        unlink_block(allocator, next);
    }
    if (joins_previous)
        give_block(allocator, handle, previous, blocks[previous].address);
    else if (joins_next)
        give_block(allocator, handle, next, block->address);
    else
        add_free(allocator, handle);
}

void allocator_empty_cache(struct allocator *allocator)
{
    struct block *blocks = allocator->blocks;
    for (int i = 0; i < (int)allocator->n_blocks; i++) {
        bool is_segment = blocks[i].previous == BLOCK_NONE && blocks[i].next == BLOCK_NONE;
        if (!is_segment || blocks[i].used || blocks[i].size == 0)
            continue;
        free_list_remove(list_of(allocator, i), blocks, i);
        allocator->reserved -= blocks[i].size;
        drop_record(allocator, i);
    }
}
