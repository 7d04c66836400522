/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing with linear probing: a key is in the first free slot from its own on. At most
 * half of the slots are in use, so a search takes few steps. A removal moves the keys behind it up,
 * so that no search ends early.
 */
#include "slurm/id_map.h"

#include <errno.h>
#include <stdlib.h>

enum { CAPACITY_MIN = 64 };

/* Numbers that follow one another are spread by 2^64 / the golden ratio. */
static size_t own_slot(const struct id_map *map, uint64_t key)
{
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (map->capacity - 1);
}

static size_t find_slot(const struct id_map *map, uint64_t key)
{
    size_t i = own_slot(map, key);
    while (map->slots[i].value && map->slots[i].key != key)
        i = (i + 1) & (map->capacity - 1);
    return i;
}

void *id_map_get(const struct id_map *map, uint64_t key)
{
    return map->capacity ? map->slots[find_slot(map, key)].value : NULL;
}

static int grow_map(struct id_map *map)
{
    struct id_map larger = {.capacity = map->capacity ? 2 * map->capacity : CAPACITY_MIN};
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].value)
            larger.slots[find_slot(&larger, map->slots[i].key)] = map->slots[i];
    larger.count = map->count;
    free(map->slots);
    *map = larger;
    return 0;
}

int id_map_set(struct id_map *map, uint64_t key, void *value)
{
    if (2 * (map->count + 1) > map->capacity && grow_map(map) < 0)
        return -ENOMEM;
    struct id_map_slot *slot = &map->slots[find_slot(map, key)];
    map->count += !slot->value;
    *slot = (struct id_map_slot){key, value};
    return 0;
}

void id_map_remove(struct id_map *map, uint64_t key)
{
    size_t last = map->capacity - 1, gap = map->capacity ? find_slot(map, key) : 0;
    if (!map->capacity || !map->slots[gap].value)
        return;
    map->count--;
    for (size_t i = (gap + 1) & last; map->slots[i].value; i = (i + 1) & last) {
        size_t own = own_slot(map, map->slots[i].key);
        if (((i - own) & last) < ((i - gap) & last))
            continue; /* its search begins behind the gap */
        map->slots[gap] = map->slots[i];
        gap = i;
    }
    map->slots[gap].value = NULL;
}

void id_map_fini(struct id_map *map)
{
    free(map->slots);
    *map = (struct id_map){0};
}
