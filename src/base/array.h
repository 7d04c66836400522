/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growable arrays of any type, and the length of arrays of fixed size.
 *
 * A growable array is three members that its owner names: a typed pointer `items`, a `size_t count`
 * of the items in use, and a `size_t capacity` of the items that memory is allocated for. All start
 * as zero, and free(items) ends it:
 *
 *     struct { struct job *jobs; size_t count, capacity; } list = {0};
 *     if (ARRAY_APPEND(list.jobs, list.count, list.capacity, job) < 0)
 *         return -ENOMEM;
 *
 * The macros evaluate their array arguments several times: give them plain members.
 */
#ifndef COLLOC_BASE_ARRAY_H
#define COLLOC_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>

/* The number of items of an array of fixed size (not of a pointer), as a size_t. */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Makes the capacity at least `wanted` items. The new items are not initialised.
 *
 * items:    typed pointer, NULL or from malloc; assigned when the memory moves
 * capacity: size_t lvalue; only ever grows
 * wanted:   number of items; more than PTRDIFF_MAX bytes are an error
 *
 * Returns 0, or -ENOMEM: then items and capacity are what they were.
 */
#define ARRAY_RESERVE(items, capacity, wanted)                                                     \
    ((items) = array_grow((items), &(capacity), (size_t)(wanted), sizeof *(items)),                \
        (capacity) >= (size_t)(wanted) ? 0 : -ENOMEM)

/*
 * Adds an item at the end. The value comes last and may be a compound literal with commas.
 *
 * Returns 0, or -ENOMEM: then nothing has changed.
 */
#define ARRAY_APPEND(items, count, capacity, ...)                                                  \
    (ARRAY_RESERVE(items, capacity, (count) + 1) < 0 ? -ENOMEM                                     \
                                                     : ((items)[(count)++] = (__VA_ARGS__), 0))

/*
 * What ARRAY_RESERVE calls. The new capacity is twice the old one, at least 8 items, and at least
 * wanted: amortised constant time per appended item, no waste for a known size. Chosen.
 *
 * Returns the items at their new place with *capacity raised; or `items` with *capacity unchanged:
 * it was large enough, or there is no memory, or the size is beyond PTRDIFF_MAX bytes.
 */
void *array_grow(void *items, size_t *capacity, size_t wanted, size_t item_size);

#endif
