/* SPDX-License-Identifier: Apache-2.0 */
/* The one growth rule of all growable arrays: array.h describes it. */
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 8 }; /* chosen: most arrays stay below it */

void *array_grow(void *items, size_t *capacity, size_t wanted, size_t item_size)
{
    size_t most = PTRDIFF_MAX / item_size;
    if (wanted <= *capacity || wanted > most)
        return items;
    size_t grown = *capacity > most / 2 ? most : 2 * *capacity;
    if (grown < FIRST_CAPACITY)
        grown = FIRST_CAPACITY;
    if (grown < wanted)
        grown = wanted;
    void *moved = realloc(items, grown * item_size);
    if (!moved)
        return items;
    *capacity = grown;
    return moved;
}
