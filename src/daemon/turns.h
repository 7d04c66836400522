/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue whose users take turns, so that a user with many entries does not delay the others. Each
 * user's entries keep their order:
 *
 *     queue           ada 1, ada 2, bob 1
 *     take   ada 1    bob 1, ada 2
 *     put back        bob 1, ada 1, ada 2
 *     take   bob 1    ada 1, ada 2
 *
 * Entries are part of what the caller allocates.
 */
#ifndef COLLOC_DAEMON_TURNS_H
#define COLLOC_DAEMON_TURNS_H

#include <sys/types.h>

struct turn {
    struct turn *next;
    uid_t user; /* names_counted_uid */
};

/* Start with {0}. */
struct turns {
    struct turn *first;
};

/* Adds an entry behind all others. */
void turns_add(struct turns *turns, struct turn *turn);

/* Takes the first entry out; the other entries of its user go behind those of other users. Returns
 * NULL when there is none. */
struct turn *turns_take(struct turns *turns);

/* Returns an entry that was just taken: it comes before the other entries of its user, and behind
 * those of other users. */
void turns_put_back(struct turns *turns, struct turn *turn);

#endif
