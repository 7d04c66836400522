/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the driver puts segments among one another. It matters because of free blocks of equal size
 * the allocator takes the one at the lowest address, and so which segment is emptied and which is
 * not.
 *
 * As seen on an H200 (driver 580, 674 trainings): a segment goes to the lowest rest of a
 * reservation that has room for it; where none has, the driver reserves whole steps of 32 MiB below
 * everything it reserved before.
 */
#ifndef COLLOC_PHYSICS_ADDRESS_SPACE_H
#define COLLOC_PHYSICS_ADDRESS_SPACE_H

#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_RESTS = 128 }; /* those of the last reservations; older ones are forgotten */

struct address_rest {
    int64_t address, size;
};

/* All zero is an empty one. Addresses are below 0. */
struct address_space {
    int64_t lowest;
    struct address_rest rests[ADDRESS_RESTS]; /* a ring, the newest, which is the lowest, last */
    size_t n_reserved;                        /* reservations with a rest, ever */
};

/* The address of a new segment. */
int64_t address_space_place(struct address_space *space, int64_t size);

#endif
