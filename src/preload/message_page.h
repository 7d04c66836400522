/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives of NCCL in the page of a process, behind its steps (page.h, whose contract
 * holds for it, too). All zero: the process has launched none, or its library does not count them.
 *
 * What one rank of a communicator sends to another goes through a channel, in order: the third send
 * is received by the third receive. Both count it under the same name.
 *
 *     rank 0 has sent 3:         communicator W, ends 0 -> 1, launched 3
 *     rank 1 has received 2:     communicator W, ends 0 -> 1, launched 2
 */
#ifndef COLLOC_PRELOAD_MESSAGE_PAGE_H
#define COLLOC_PRELOAD_MESSAGE_PAGE_H

#include "preload/page.h"

enum {
    PRELOAD_CALLS_OFFSET = 2304,
    PRELOAD_CHANNELS_MAX =
        64, /* chosen: each rank sends to all others of 16 in two communicators */
    PRELOAD_PLACES_MAX = 0xffff, /* ranks of a communicator with channels */
};

struct preload_channel {
    _Atomic uint64_t communicator; /* its id; 0: unused */
    _Atomic uint64_t launched;     /* sends or receives of this rank */
    _Atomic uint32_t ends;         /* message_ends */
    uint32_t reserved;
};

struct preload_calls {
    _Atomic uint64_t counted; /* calls of NCCL that were let in, and all of whose collectives, sends
                                 and receives are counted. A group is one call */
    _Atomic uint64_t allowed; /* the daemon's: up to this number calls pass while they are held */
    struct preload_channel channels[PRELOAD_CHANNELS_MAX];
    _Atomic uint32_t joining; /* threads in calls that make or end communicators: these are never
                                 held, and may wait for other ranks */
    uint32_t reserved;
};

_Static_assert(
    PRELOAD_CALLS_OFFSET + sizeof(struct preload_calls) <= PRELOAD_PAGE_SIZE, "in the page");

static inline struct preload_calls *preload_page_calls(const struct preload_page *page)
{
    return (struct preload_calls *)(void *)((uintptr_t)page + PRELOAD_CALLS_OFFSET);
}

/* The channel between two ranks. */
static inline uint32_t message_ends(uint32_t from, uint32_t to)
{
    return from << 16 | to;
}

static inline uint32_t message_from(uint32_t ends)
{
    return ends >> 16;
}

static inline uint32_t message_to(uint32_t ends)
{
    return ends & 0xffff;
}

#endif
