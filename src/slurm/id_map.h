/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from numbers to pointers. Start with {0}. */
#ifndef COLLOC_SLURM_ID_MAP_H
#define COLLOC_SLURM_ID_MAP_H

#include <stddef.h>
#include <stdint.h>

struct id_map {
    struct id_map_slot {
        uint64_t key;
        void *value; /* NULL: the slot is free */
    } * slots;
    size_t count, capacity; /* capacity: 0 or a power of 2 */
};

/* Returns the value of the key, or NULL. */
void *id_map_get(const struct id_map *map, uint64_t key);

/* Sets the value of the key, which is not NULL. Returns 0 or -ENOMEM. */
int id_map_set(struct id_map *map, uint64_t key, void *value);

/* Removes the key, if it exists. */
void id_map_remove(struct id_map *map, uint64_t key);

/* Frees the table, not the values. */
void id_map_fini(struct id_map *map);

#endif
