/* SPDX-License-Identifier: Apache-2.0 */
/* The free blocks of one pool of the simulated allocator: the smallest that is large enough is
 * found, and of equal ones that with the lowest address. */
#ifndef COLLOC_PHYSICS_FREE_LIST_H
#define COLLOC_PHYSICS_FREE_LIST_H

#include <stddef.h>
#include <stdint.h>

enum { BLOCK_NONE = -1 };

/* A block of a segment, in an array; blocks refer to each other by their index there. */
struct block {
    int64_t size;
    int64_t address;            /* of blocks of equal size the lowest is taken */
    int previous, next;         /* neighbours in the segment; BLOCK_NONE at its ends */
    int child, sibling, before; /* of a free block: its place in a heap (free_list.c) */
    uint8_t pool;
    uint8_t used;
};

/* The free blocks of one size. */
struct size_class {
    int64_t size;
    int lowest; /* the one with the lowest address */
};

/* Zeroed, it is empty. */
struct free_list {
    struct size_class *classes; /* by size; none is empty */
    size_t n, capacity;
};

/* Returns the class of the smallest free blocks of at least `size` bytes, or NULL. It is valid
 * until the list changes. */
struct size_class *free_list_find(const struct free_list *list, int64_t size);

/* Adds a block. Returns 0 or -ENOMEM. */
int free_list_add(struct free_list *list, struct block *blocks, int handle);

/* Removes a block, which must be in the list. */
void free_list_remove(struct free_list *list, struct block *blocks, int handle);

/* Removes the block of a class that has the lowest address. Returns it. */
int free_list_take(struct free_list *list, struct block *blocks, struct size_class *class);

/* Changes a block of a class. Returns 0; -ENOMEM: the block is in the list no more. */
int free_list_resize(struct free_list *list, struct block *blocks, struct size_class *class,
    int handle, int64_t address, int64_t size);

void free_list_fini(struct free_list *list);

#endif
