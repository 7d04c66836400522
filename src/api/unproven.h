/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections over TCP whose user is not proven yet. One is closed when it is late, or when there
 * are too many. Pure: the server reports which connections begin and end, and closes them.
 *
 * Contract:
 *   1. A connection without a whole request is late UNPROVEN_MAX_US after it was accepted, however
 *      often it sends a byte. One whose request is being judged is late after JUDGED_MAX_US; a
 *      refused one after UNPROVEN_MAX_US, as before.
 *   2. Of too many, the network with the most of them loses its oldest one without a whole request,
 *      or else its newest. So a flood pushes out its own connections; see base/crowd.h.
 */
#ifndef COLLOC_API_UNPROVEN_H
#define COLLOC_API_UNPROVEN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    UNPROVEN_PLACES = 256,              /* chosen */
    UNPROVEN_MAX_US = 10 * 1000 * 1000, /* chosen: a request follows within a second */
    JUDGED_MAX_US = 30 * 1000 * 1000,   /* chosen: libmunge gives munged up after some 10 s */
};

/* One such connection; a member of the server's record of it. */
struct unproven {
    int fd;                        /* borrowed */
    uint64_t network;              /* that it comes from (tcp_address_network) */
    int64_t begun_us;              /* when it was accepted, of clock_monotonic_us */
    bool is_judged;                /* its request is whole, and `admit` has not decided yet */
    struct unproven *next, **link; /* link NULL: it is not in the list */
};

struct unproven_list {
    struct unproven *first, **last; /* oldest first */
    int n;
};

void unproven_init(struct unproven_list *list);

/* Appends one; all fields but the list's are set. */
void unproven_add(struct unproven_list *list, struct unproven *added);

/* Removes one; does nothing for one that is not in the list. */
void unproven_remove(struct unproven_list *list, struct unproven *gone);

/* Returns one that must be closed at `now_us`, or NULL. */
struct unproven *unproven_find_late(const struct unproven_list *list, int64_t now_us);

/* Returns the one to close for the next, or NULL while there are UNPROVEN_PLACES or fewer. */
struct unproven *unproven_find_excess(const struct unproven_list *list);

#endif
