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

enum { CAPACITY_FIRST = 256 }; /* chosen: block records that are allocated first */

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

/* step: a power of two */
static int64_t round_up(int64_t bytes, int64_t step)
{
    return bytes <= step ? step : (bytes + step - 1) & -step;
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

static bool is_before(
    const struct allocator *allocator, struct free_block entry, int64_t size, int64_t address)
{
    return entry.size < size ||
           (entry.size == size && allocator->blocks[entry.handle].address < address);
}

/* Returns the index of the first of the entries `low` to `high` that is not before (size, address);
 * `high` where all are. */
static size_t find_place(const struct allocator *allocator, const struct free_list *list,
    size_t low, size_t high, int64_t size, int64_t address)
{
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (is_before(allocator, list->blocks[middle], size, address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct free_list *list_of(struct allocator *allocator, int handle)
{
    return &allocator->pools[allocator->blocks[handle].pool];
}

static size_t place_of(struct allocator *allocator, int handle)
{
    const struct block *block = &allocator->blocks[handle];
    const struct free_list *list = list_of(allocator, handle);
    return find_place(allocator, list, 0, list->n, block->size, block->address);
}

static void list_shift(struct free_list *list, size_t to, size_t from, size_t n)
{
    memmove(&list->blocks[to], &list->blocks[from], n * sizeof list->blocks[0]);
}

/* The list has room: each block record was allocated together with an entry in each list. */
static void list_add(struct allocator *allocator, int handle)
{
    struct free_list *list = list_of(allocator, handle);
    size_t at = place_of(allocator, handle);
    list_shift(list, at + 1, at, list->n - at);
    list->blocks[at] = (struct free_block){allocator->blocks[handle].size, handle};
    list->n++;
}

static void list_remove(struct free_list *list, size_t at)
{
    list->n--;
    list_shift(list, at, at + 1, list->n - at);
}

/* Puts another block, or the same one with another size, in the place of entry `at`. Most stay
 * where they are: the rest of the largest block, and one that has grown by a little. */
static void list_replace(struct allocator *allocator, size_t at, int handle)
{
    const struct block *block = &allocator->blocks[handle];
    struct free_list *list = list_of(allocator, handle);
    size_t to = at;
    if (at > 0 && !is_before(allocator, list->blocks[at - 1], block->size, block->address)) {
        to = find_place(allocator, list, 0, at - 1, block->size, block->address);
        list_shift(list, to + 1, to, at - to);
    } else if (at + 1 < list->n &&
               is_before(allocator, list->blocks[at + 1], block->size, block->address)) {
        to = find_place(allocator, list, at + 2, list->n, block->size, block->address) - 1;
        list_shift(list, at, at + 1, to - at);
    }
    list->blocks[to] = (struct free_block){block->size, handle};
}

static int grow_blocks(struct allocator *allocator)
{
    size_t capacity = allocator->capacity + allocator->capacity / 2 + CAPACITY_FIRST;
    struct block *blocks = reallocarray(allocator->blocks, capacity, sizeof *blocks);
    if (!blocks)
        return -ENOMEM;
    allocator->blocks = blocks;
    for (int i = 0; i < ALLOCATOR_POOLS; i++) {
        struct free_block *list = reallocarray(allocator->pools[i].blocks, capacity, sizeof *list);
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

/* Makes a segment one block, which is in no list yet. */
static int add_segment(struct allocator *allocator, int64_t segment, int pool, int *ret_handle)
{
    int r = new_record(allocator, ret_handle);
    if (r < 0)
        return r;
    allocator->blocks[*ret_handle] = (struct block){.size = segment,
        .previous = NONE,
        .next = NONE,
        .address = address_space_place(&allocator->addresses, segment),
        .pool = (uint8_t)pool};
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

/* Makes the rest of a block, after its first `size` bytes, a block that is in no list yet. */
static int split_block(struct allocator *allocator, int handle, int64_t size, int *ret_rest)
{
    int r = new_record(allocator, ret_rest);
    if (r < 0)
        return r;
    struct block *block = &allocator->blocks[handle], *behind = &allocator->blocks[*ret_rest];
    *behind = *block;
    behind->size -= size;
    behind->address += size;
    behind->previous = handle;
    behind->used = 0;
    if (block->next != NONE)
        allocator->blocks[block->next].previous = *ret_rest;
    block->size = size;
    block->next = *ret_rest;
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

/* Finds the smallest free block, or adds one of a new segment to the list. */
static int find_free(struct allocator *allocator, int64_t size, size_t *ret_at)
{
    struct free_list *list = &allocator->pools[pool_of(allocator, size)];
    int handle;
    *ret_at = find_place(allocator, list, 0, list->n, size, INT64_MIN);
    if (*ret_at < list->n)
        return 0;
    int r = add_segment(
        allocator, segment_size(allocator, size), pool_of(allocator, size), &handle);
    if (r == 0)
        list_add(allocator, handle);
    return r;
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
    list_add(allocator, handle);
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
    struct free_list *list = &allocator->pools[pool_of(allocator, size)];
    size_t at;
    int rest, r = find_free(allocator, size, &at);
    if (r < 0)
        return r;
    int handle = list->blocks[at].handle;
    if (is_worth_a_block(allocator, handle, allocator->blocks[handle].size - size, size)) {
        r = split_block(allocator, handle, size, &rest);
        if (r < 0)
            return r;
        list_replace(allocator, at, rest);
    } else {
        list_remove(list, at);
    }
    allocator->blocks[handle].used = 1;
    count_active(allocator, allocator->blocks[handle].size);
    return handle;
}

int allocator_touch(struct allocator *allocator, int64_t bytes)
{
    if (!is_in_range(allocator, bytes))
        return -ERANGE;
    int64_t size = round_request(allocator, bytes);
    size_t at;
    int r = find_free(allocator, size, &at);
    if (r < 0)
        return r;
    const struct free_block *found = &allocator->pools[pool_of(allocator, size)].blocks[at];
    bool is_split = is_worth_a_block(allocator, found->handle, found->size - size, size);
    int64_t used = is_split ? size : found->size;
    count_active(allocator, used);
    allocator->active -= used;
    return 0;
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

static bool is_free(const struct allocator *allocator, int handle)
{
    return handle != NONE && !allocator->blocks[handle].used;
}

/* A free neighbour's entry becomes that of the merged block; of two, one entry goes. */
void allocator_release(struct allocator *allocator, int handle)
{
    if (handle == NONE)
        return;
    struct block *block = &allocator->blocks[handle];
    int previous = block->previous, next = block->next;
    bool merges_previous = is_free(allocator, previous), merges_next = is_free(allocator, next);
    allocator->active -= block->size;
    block->used = 0;
    if (!merges_previous && !merges_next) {
        list_add(allocator, handle);
        return;
    }
    size_t at = place_of(allocator, merges_next ? next : previous);
    if (merges_next)
        merge_blocks(allocator, handle, next);
    if (merges_previous && merges_next) {
        list_remove(list_of(allocator, handle), at);
        at = place_of(allocator, previous);
    }
    if (merges_previous)
        merge_blocks(allocator, previous, handle);
    list_replace(allocator, at, merges_previous ? previous : handle);
}
