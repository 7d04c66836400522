/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each reservation lies below the one before it, so the newest has the lowest addresses left: the
 * search for the lowest rest that is large enough goes from the newest to the oldest.
 */
#include "estimator/physics/address_space.h"

/* Measured on an H200: see the header. */
static const int64_t reservation_step = (int64_t)32 << 20;

static int64_t take_rest(struct address_rest *rest, int64_t size)
{
    int64_t address = rest->address;
    rest->address += size;
    rest->size -= size;
    return address;
}

/* Returns the lowest rest of this size; NULL if none is as large. */
static struct address_rest *find_rest(struct address_space *space, int64_t size)
{
    size_t known = space->n_reserved < ADDRESS_RESTS ? space->n_reserved : ADDRESS_RESTS;
    if (size > space->largest)
        return NULL;
    for (size_t i = 1; i <= known; i++) {
        struct address_rest *rest = &space->rests[(space->n_reserved - i) % ADDRESS_RESTS];
        if (rest->size >= size)
            return rest;
    }
    space->largest = size - 1;
    return NULL;
}

static void add_rest(struct address_space *space, int64_t address, int64_t size)
{
    space->rests[space->n_reserved++ % ADDRESS_RESTS] = (struct address_rest){address, size};
    if (size > space->largest)
        space->largest = size;
}

int64_t address_space_place(struct address_space *space, int64_t size)
{
    struct address_rest *rest = find_rest(space, size);
    if (rest)
        return take_rest(rest, size);
    int64_t reserved = (size + reservation_step - 1) / reservation_step * reservation_step;
    space->lowest -= reserved;
    if (reserved > size)
        add_rest(space, space->lowest + size, reserved - size);
    return space->lowest;
}
