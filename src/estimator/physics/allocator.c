/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the caching allocators (allocator.h), over a table of blocks and a sorted list
 * of free ones for each pool.
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
#include <string.h>

#include "base/units.h"

enum { NONE = -1, SMALL = 0, LARGE = 1 }; /* no block; the two pools */

/* c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc,
 * kLargeBuffer, kRoundLarge: in this order, in bytes. */
static const int64_t round_to = 512;
static const int64_t small_most = MIB, small_segment = 2 * MIB;
static const int64_t own_segment_from = 10 * MIB, large_segment = 20 * MIB, segment_step = 2 * MIB;

/* xla/tsl/framework/bfc_allocator: kMinAllocationSize, the first region, and
 * kMaxInternalFragmentation, in bytes. */
static const int64_t bfc_round_to = 256, bfc_first_region = 2 * MIB, bfc_rest_most = 128 * MIB;

enum { CAPACITY_FIRST = 256 }; /* chosen: blocks of the first allocation */

void allocator_init(struct allocator *allocator)
{
    *allocator = (struct allocator){.spare = NONE};
}

void allocator_init_bfc(struct allocator *allocator)
{
    *allocator = (struct allocator){
        .rules = ALLOCATOR_BFC, .region = bfc_first_region, .spare = NONE};
}

void allocator_fini(struct allocator *allocator)
{
    free(allocator->blocks);
    for (int i = 0; i < ALLOCATOR_POOLS; i++)
        free(allocator->pools[i].blocks);
    allocator_init(allocator);
}

static int64_t round_up(int64_t bytes, int64_t step)
{
    return bytes <= step ? step : (bytes + step - 1) / step * step;
}

int64_t allocator_round(int64_t bytes)
{
    return round_up(bytes, round_to);
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

/* Returns the index in the list of the first block that is not before (size, address). */
static size_t find_place(
    const struct allocator *allocator, const struct free_list *list, int64_t size, int64_t address)
{
    size_t low = 0, high = list->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct block *block = &allocator->blocks[list->blocks[middle]];
        if (block->size < size || (block->size == size && block->address < address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The list has room: each block record was allocated together with an entry in each list. */
static void list_add(struct allocator *allocator, int handle)
{
    const struct block *block = &allocator->blocks[handle];
    struct free_list *list = &allocator->pools[block->pool];
    size_t at = find_place(allocator, list, block->size, block->address);
    memmove(&list->blocks[at + 1], &list->blocks[at], (list->n - at) * sizeof *list->blocks);
    list->blocks[at] = handle;
    list->n++;
}

static void list_remove(struct allocator *allocator, int handle)
{
    const struct block *block = &allocator->blocks[handle];
    struct free_list *list = &allocator->pools[block->pool];
    size_t at = find_place(allocator, list, block->size, block->address);
    list->n--;
    memmove(&list->blocks[at], &list->blocks[at + 1], (list->n - at) * sizeof *list->blocks);
}

static int grow_blocks(struct allocator *allocator)
{
    size_t capacity = allocator->capacity ? 2 * allocator->capacity : CAPACITY_FIRST;
    struct block *blocks = reallocarray(allocator->blocks, capacity, sizeof *blocks);
    if (!blocks)
        return -ENOMEM;
    allocator->blocks = blocks;
    for (int i = 0; i < ALLOCATOR_POOLS; i++) {
        int *list = reallocarray(allocator->pools[i].blocks, capacity, sizeof *list);
        if (!list)
            return -ENOMEM;
        allocator->pools[i].blocks = list;
    }
    allocator->capacity = capacity;
    return 0;
}

static int new_record(struct allocator *allocator, int *ret_handle)
{
    if (allocator->spare != NONE) {
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
    allocator->blocks[handle].next = allocator->spare;
    allocator->spare = handle;
}

static int take_segment(struct allocator *allocator, int64_t size, int *ret_handle)
{
    int r = new_record(allocator, ret_handle);
    if (r < 0)
        return r;
    int64_t segment = segment_size(allocator, size);
    allocator->blocks[*ret_handle] = (struct block){.size = segment,
        .previous = NONE,
        .next = NONE,
        .address = address_space_place(&allocator->addresses, segment),
        .pool = (uint8_t)pool_of(allocator, size)};
    allocator->reserved += segment;
    return 0;
}

static bool is_worth_a_block(
    const struct allocator *allocator, int handle, int64_t left, int64_t size)
{
    if (allocator->rules == ALLOCATOR_BFC)
        return left > 0 && (left >= size || left >= bfc_rest_most);
    return allocator->blocks[handle].pool == SMALL ? left >= round_to : left > small_most;
}

/* Makes the rest of a block, after its first `size` bytes, a free block if it is large enough. */
static int split_block(struct allocator *allocator, int handle, int64_t size)
{
    int rest;
    int64_t left = allocator->blocks[handle].size - size;
    if (!is_worth_a_block(allocator, handle, left, size))
        return 0;
    int r = new_record(allocator, &rest);
    if (r < 0)
        return r;
    struct block *block = &allocator->blocks[handle], *behind = &allocator->blocks[rest];
    *behind = *block;
    behind->size = left;
    behind->address += size;
    behind->previous = handle;
    behind->used = 0;
    if (block->next != NONE)
        allocator->blocks[block->next].previous = rest;
    block->size = size;
    block->next = rest;
    list_add(allocator, rest);
    return 0;
}

int allocator_take(struct allocator *allocator, int64_t bytes)
{
    if (bytes < 0 || bytes > ALLOCATOR_REQUEST_MAX || allocator->reserved > ALLOCATOR_REQUEST_MAX)
        return -ERANGE;
    int64_t size = round_up(bytes, allocator->rules == ALLOCATOR_BFC ? bfc_round_to : round_to);
    const struct free_list *list = &allocator->pools[pool_of(allocator, size)];
    size_t at = find_place(allocator, list, size, INT64_MIN);
    int handle, r = 0;
    if (at < list->n) {
        handle = list->blocks[at];
        list_remove(allocator, handle);
    } else {
        r = take_segment(allocator, size, &handle);
    }
    if (r == 0)
        r = split_block(allocator, handle, size);
    if (r < 0)
        return r;
    struct block *block = &allocator->blocks[handle];
    block->used = 1;
    allocator->active += block->size;
    if (allocator->active > allocator->active_peak)
        allocator->active_peak = allocator->active;
    return handle;
}

/* Merges `second`, which follows `first` in the segment, into it. */
static void merge_blocks(struct allocator *allocator, int first, int second)
{
    struct block *front = &allocator->blocks[first], *back = &allocator->blocks[second];
    front->size += back->size;
    front->next = back->next;
    if (back->next != NONE)
        allocator->blocks[back->next].previous = first;
    drop_record(allocator, second);
}

void allocator_release(struct allocator *allocator, int handle)
{
    if (handle == NONE)
        return;
    struct block *block = &allocator->blocks[handle];
    int previous = block->previous, next = block->next;
    allocator->active -= block->size;
    block->used = 0;
    if (next != NONE && !allocator->blocks[next].used) {
        list_remove(allocator, next);
        merge_blocks(allocator, handle, next);
    }
    if (previous != NONE && !allocator->blocks[previous].used) {
        list_remove(allocator, previous);
        merge_blocks(allocator, previous, handle);
        handle = previous;
    }
    list_add(allocator, handle);
}
