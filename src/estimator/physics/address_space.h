/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses at which the driver places segments. They matter because the allocator uses the
 * free block with the lowest address among those of equal size: so addresses decide which segments
 * become empty.
 *
 * Measured on an H200 (driver 580, 674 trainings): a segment is placed in the lowest rest of a
 * reservation that is large enough. If there is none, the driver reserves a multiple of 32 MiB
 * below all earlier reservations.
 */
#ifndef COLLOC_PHYSICS_ADDRESS_SPACE_H
#define COLLOC_PHYSICS_ADDRESS_SPACE_H

#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_RESTS = 128 }; /* chosen: of the last reservations; older ones are forgotten */

struct address_rest {
    int64_t address, size;
};

/* Zeroed, it is empty. Addresses are below 0. */
struct address_space {
    int64_t lowest;
    struct address_rest rests[ADDRESS_RESTS]; /* a ring, the newest, which is the lowest, last */
    size_t n_reserved;                        /* reservations with a rest, ever */
    int64_t largest;                          /* no rest is larger */
};

/* Returns the address of a new segment of `size` bytes. */
int64_t address_space_place(struct address_space *space, int64_t size);

#endif
