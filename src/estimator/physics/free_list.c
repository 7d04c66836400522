/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training has thousands of free blocks of few sizes: its layers are alike, and so are the rests
 * that they leave in segments. So the list has one entry for each size, and the blocks of a size
 * are a pairing heap by address (Fredman, Sedgewick, Sleator, Tarjan 1986), whose links are in the
 * blocks.
 *
 *     sizes      1.5 MiB            2 MiB       17 MiB
 *     blocks     -96                -64         -32         addresses, in MiB
 *               /    \
 *            -64      -32
 *
 * A block's children are a list by `sibling`; `before` is the sibling before a child, or of the
 * first child its parent. A block joins a heap by one comparison. One that leaves it is replaced by
 * its children, which are joined in pairs, and the pairs one by one: O(log n) on average over all
 * calls. Most changes need none of it: a segment's last block, alone of its size, is cut from and
 * grows again between the same two sizes.
 */
#include "estimator/physics/free_list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_FIRST = 32 }; /* chosen: sizes that are free at a time in most trainings */

/* ---- heaps ---- */

/* Joins two heaps, by their roots. Returns the root of both. */
static int join_heaps(struct block *blocks, int a, int b)
{
    int low = blocks[a].address < blocks[b].address ? a : b, high = low == a ? b : a;
    int first = blocks[low].child;
    blocks[high].sibling = first;
    blocks[high].before = low;
    if (first != BLOCK_NONE)
        blocks[first].before = high;
    blocks[low].child = high;
    return low;
}

/* Joins the siblings from `first` on in pairs. Returns the pairs, the last one first. */
static int join_pairs(struct block *blocks, int first)
{
    int pairs = BLOCK_NONE;
    while (first != BLOCK_NONE) {
        int root = first, other = blocks[first].sibling;
        first = other == BLOCK_NONE ? BLOCK_NONE : blocks[other].sibling;
        if (other != BLOCK_NONE)
            root = join_heaps(blocks, root, other);
        blocks[root].sibling = pairs;
        pairs = root;
    }
    return pairs;
}

/* Makes one heap of a block's children. Returns its root, or BLOCK_NONE. */
static int join_children(struct block *blocks, int handle)
{
    int rest = join_pairs(blocks, blocks[handle].child), root = BLOCK_NONE;
    while (rest != BLOCK_NONE) {
        int next = blocks[rest].sibling;
        root = root == BLOCK_NONE ? rest : join_heaps(blocks, root, rest);
        rest = next;
    }
    if (root != BLOCK_NONE)
        blocks[root].sibling = blocks[root].before = BLOCK_NONE;
    return root;
}

/* Takes a block that is not the root, with its children, out of the heap. */
static void cut_heap(struct block *blocks, int handle)
{
    int before = blocks[handle].before, sibling = blocks[handle].sibling;
    if (blocks[before].child == handle)
        blocks[before].child = sibling;
    else
        blocks[before].sibling = sibling;
    if (sibling != BLOCK_NONE)
        blocks[sibling].before = before;
}

/* ---- sizes ---- */

struct size_class *free_list_find(const struct free_list *list, int64_t size)
{
    size_t low = 0, high = list->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list->classes[middle].size < size)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->n ? &list->classes[low] : NULL;
}

/* Inserts a class in front of `next`; NULL: behind all. */
static int insert_class(
    struct free_list *list, const struct size_class *next, struct size_class class)
{
    size_t at = next ? (size_t)(next - list->classes) : list->n;
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : CAPACITY_FIRST;
        struct size_class *classes = reallocarray(list->classes, capacity, sizeof *classes);
        if (!classes)
            return -ENOMEM;
        list->classes = classes;
        list->capacity = capacity;
    }
    memmove(&list->classes[at + 1], &list->classes[at], (list->n - at) * sizeof *list->classes);
    list->classes[at] = class;
    list->n++;
    return 0;
}

static void remove_class(struct free_list *list, struct size_class *class)
{
    size_t behind = (size_t)(&list->classes[list->n] - class) - 1;
    memmove(class, class + 1, behind * sizeof *class);
    list->n--;
}

int free_list_add(struct free_list *list, struct block *blocks, int handle)
{
    struct block *block = &blocks[handle];
    struct size_class *class = free_list_find(list, block->size);
    block->child = block->sibling = block->before = BLOCK_NONE;
    if (!class || class->size != block->size)
        return insert_class(list, class, (struct size_class){block->size, handle});
    class->lowest = join_heaps(blocks, class->lowest, handle);
    return 0;
}

int free_list_take(struct free_list *list, struct block *blocks, struct size_class *class)
{
    int handle = class->lowest;
    class->lowest = join_children(blocks, handle);
    if (class->lowest == BLOCK_NONE)
        remove_class(list, class);
    return handle;
}

void free_list_remove(struct free_list *list, struct block *blocks, int handle)
{
    struct size_class *class = free_list_find(list, blocks[handle].size);
    if (class->lowest == handle) {
        free_list_take(list, blocks, class);
        return;
    }
    cut_heap(blocks, handle);
    int children = join_children(blocks, handle);
    if (children != BLOCK_NONE)
        class->lowest = join_heaps(blocks, class->lowest, children);
}

/* Tests whether a class of another size would have the place of this one. */
static bool keeps_place(const struct free_list *list, const struct size_class *class, int64_t size)
{
    const struct size_class *end = &list->classes[list->n];
    return (class == list->classes || class[-1].size < size) &&
           (class + 1 == end || size < class[1].size);
}

int free_list_resize(struct free_list *list, struct block *blocks, struct size_class *class,
    int handle, int64_t address, int64_t size)
{
    struct block *block = &blocks[handle];
    bool is_alone = class->lowest == handle && block->child == BLOCK_NONE;
    bool stays = is_alone && keeps_place(list, class, size);
    if (!stays)
        free_list_remove(list, blocks, handle);
    block->address = address;
    block->size = size;
    if (!stays)
        return free_list_add(list, blocks, handle);
    class->size = size;
    return 0;
}

void free_list_fini(struct free_list *list)
{
    free(list->classes);
    *list = (struct free_list){0};
}
