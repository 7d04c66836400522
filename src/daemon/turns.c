/* SPDX-License-Identifier: Apache-2.0 */
/* A list in the order of the turns, which is walked: each connection has one entry at most. */
#include "daemon/turns.h"

#include <stddef.h>

static void insert_turn(struct turn **at, struct turn *turn)
{
    turn->next = *at;
    *at = turn;
}

void turns_add(struct turns *turns, struct turn *turn)
{
    struct turn **at = &turns->first;
    while (*at)
        at = &(*at)->next;
    insert_turn(at, turn);
}

struct turn *turns_take(struct turns *turns)
{
    struct turn *taken = turns->first, *own = NULL, **last_own = &own, **at = &turns->first;
    if (!taken)
        return NULL;
    turns->first = taken->next;
    while (*at) {
        struct turn *turn = *at;
        if (turn->user != taken->user) {
            at = &turn->next;
            continue;
        }
        *at = turn->next;
        *last_own = turn;
        last_own = &turn->next;
    }
    *last_own = NULL;
    *at = own;
    return taken;
}

void turns_put_back(struct turns *turns, struct turn *turn)
{
    struct turn **at = &turns->first;
    while (*at && (*at)->user != turn->user)
        at = &(*at)->next;
    insert_turn(at, turn);
}
