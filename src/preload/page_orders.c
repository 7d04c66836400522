/* SPDX-License-Identifier: Apache-2.0 */
/* Sets and reads the words of pages by which processes of tasks give way. */
#include "preload/page_orders.h"

#include <stdio.h>
#include <stdlib.h>

#include "preload/futex.h"

void page_set_gate(struct preload_page *page, bool is_closed)
{
    if (!is_closed && atomic_load(&page->carry_state) >= PRELOAD_CARRY_COPYING)
        return;
    atomic_store(&page->gate, is_closed ? PRELOAD_GATE_CLOSED : PRELOAD_GATE_OPEN);
    if (is_closed)
        return;
    futex_wake_all(&page->gate);
    atomic_store(&page->collectives_held, 0);
    futex_wake_all(&page->collectives_held);
}

/* ---- carriers ---- */

static void give_order(struct preload_page *page, enum preload_carry_goal goal)
{
    uint32_t serial = atomic_load(&page->carry_order) & ~(uint32_t)PRELOAD_CARRY_GOAL_MASK;
    atomic_store(&page->carry_order, serial + PRELOAD_CARRY_SERIAL + goal);
    futex_wake_all(&page->carry_order);
}

enum preload_carry_answer page_carry(struct preload_page *page, bool is_away)
{
    enum preload_carry_goal goal = is_away ? PRELOAD_CARRY_AWAY : PRELOAD_CARRY_HERE;
    uint32_t order = atomic_load(&page->carry_order), done = atomic_load(&page->carry_done);
    uint32_t where = atomic_load(&page->carry_state), why = atomic_load(&page->carry_why);
    bool is_ordered = (order & PRELOAD_CARRY_GOAL_MASK) == goal;
    if (where == PRELOAD_CARRY_NONE || where > PRELOAD_CARRY_LOST)
        return PRELOAD_CARRIES_NOT;
    if (where == PRELOAD_CARRY_LOST)
        return PRELOAD_CARRIES_LOST;
    bool is_known = done == order; /* otherwise `why` may be that of an earlier order */
    if (is_away && !is_ordered && is_known && where == PRELOAD_CARRY_IS_HERE &&
        why != PRELOAD_CARRY_CAN)
        return PRELOAD_CARRIES_NOT;
    if (!is_ordered) {
        give_order(page, goal);
        where = atomic_load(&page->carry_state);
    }
    /* It has not begun to copy, and reads the order before it does: a call of the program or a
     * kernel may keep it waiting for ever. */
    if (!is_away && (where == PRELOAD_CARRY_WAITING || where == PRELOAD_CARRY_IS_HERE))
        return PRELOAD_CARRIES_DONE;
    if (!is_ordered)
        return PRELOAD_CARRIES_STILL;
    if (done != order)
        return PRELOAD_CARRIES_STILL;
    if (where == (is_away ? PRELOAD_CARRY_IS_AWAY : PRELOAD_CARRY_IS_HERE))
        return PRELOAD_CARRIES_DONE;
    give_order(page, PRELOAD_CARRY_KEEP); /* the next time it is tried again */
    return PRELOAD_CARRIES_FAILED;
}

enum preload_carry_answer page_relocate(struct preload_page *page, enum preload_place place)
{
    uint32_t order = atomic_load(&page->carry_order), done = atomic_load(&page->carry_done);
    if (atomic_load(&page->carry_state) != PRELOAD_CARRY_IS_AWAY)
        return PRELOAD_CARRIES_NOT;
    if ((order & PRELOAD_CARRY_GOAL_MASK) != PRELOAD_CARRY_TO_HOST) {
        if (page_lies(page) != PRELOAD_PLACE_NEIGHBOUR)
            return PRELOAD_CARRIES_DONE;
        page_set_place(page, place);
        give_order(page, PRELOAD_CARRY_TO_HOST);
        return PRELOAD_CARRIES_STILL;
    }
    if (done != order)
        return PRELOAD_CARRIES_STILL;
    if (page_lies(page) != PRELOAD_PLACE_NEIGHBOUR)
        return PRELOAD_CARRIES_DONE;
    give_order(page, PRELOAD_CARRY_KEEP); /* the next time it is tried again */
    return PRELOAD_CARRIES_FAILED;
}

void page_set_place(struct preload_page *page, enum preload_place place)
{
    atomic_store(&page->carry_place, place);
}

bool page_can_use(const struct preload_page *page, enum preload_place place)
{
    return place == PRELOAD_PLACE_OWN || (atomic_load(&page->carry_places) >> place & 1);
}

enum preload_place page_lies(const struct preload_page *page)
{
    uint32_t place = atomic_load(&page->carry_lies);
    return place < PRELOAD_PLACES ? (enum preload_place)place : PRELOAD_PLACE_OWN;
}

/* The library keeps the gate of a new page closed while the memory is not here. No other gate of a
 * process that runs is closed, and without an order the library begins nothing. */
void page_heal(struct preload_page *page)
{
    uint32_t where = atomic_load(&page->carry_state);
    if (where == PRELOAD_CARRY_IS_AWAY)
        page_carry(page, false);
    bool is_idle = atomic_load(&page->carry_order) == atomic_load(&page->carry_done);
    if (where == PRELOAD_CARRY_IS_HERE && is_idle && atomic_load(&page->gate))
        page_set_gate(page, false);
}

bool page_can_carry(const struct preload_page *page)
{
    uint32_t where = page ? atomic_load(&page->carry_state) : PRELOAD_CARRY_NONE;
    if (where == PRELOAD_CARRY_IS_HERE || where == PRELOAD_CARRY_WAITING)
        return atomic_load(&page->carry_why) == PRELOAD_CARRY_CAN;
    return where >= PRELOAD_CARRY_COPYING && where <= PRELOAD_CARRY_RETURNING;
}

static const char *why_not_carried(const struct preload_page *page)
{
    static const char *const reasons[PRELOAD_CARRY_WHYS] = {
        [PRELOAD_CARRY_CAN] = "it has no memory that can be carried yet",
        [PRELOAD_CARRY_IS_OFF] = "its carrier is off",
        [PRELOAD_CARRY_NO_MAPPING] = "its GPU or driver cannot map memory",
        [PRELOAD_CARRY_SEVERAL_GPUS] = "several GPUs are visible to it",
        [PRELOAD_CARRY_MANAGED] = "it uses managed memory",
        [PRELOAD_CARRY_SHARED] = "it shares GPU memory with another process",
        [PRELOAD_CARRY_CONTEXTS] = "it has more than one CUDA context",
        [PRELOAD_CARRY_OTHER_MEMORY] = "most of its memory is in pools or mapped by itself",
        [PRELOAD_CARRY_LINKED] = "one of its libraries is linked with the driver",
        [PRELOAD_CARRY_CAPTURES] = "a stream is being captured",
        [PRELOAD_CARRY_GATE_OPEN] = "its gate was open",
        [PRELOAD_CARRY_CALLS] = "a call of it, or its work on the GPU, did not end",
        [PRELOAD_CARRY_NO_HOST_MEMORY] = "there is no host memory for its buffers or its copy",
        [PRELOAD_CARRY_NO_GPU_MEMORY] = "its GPU has too little free memory",
        [PRELOAD_CARRY_DRIVER] = "a call of the driver failed",
        [PRELOAD_CARRY_NO_ROOM] = "it was handed no memory for its copy"};
    if (!page)
        return "no preloaded library answers for it: it has ended, or runs without";
    if (atomic_load(&page->carry_state) == PRELOAD_CARRY_LOST)
        return "the copy of its memory was lost";
    uint32_t why = atomic_load(&page->carry_why);
    return why < PRELOAD_CARRY_WHYS ? reasons[why] : reasons[PRELOAD_CARRY_DRIVER];
}

bool page_explain_carrier(const struct preload_page *page, pid_t pid, char *text, size_t size)
{
    if (page_can_carry(page))
        return false;
    snprintf(text, size, "process %d: %s", (int)pid, why_not_carried(page));
    return true;
}

/* ---- ranks ---- */

/* What a process writes into its page to its own harm is its matter. */
bool page_is_in_communicator(const struct preload_page *page)
{
    uint32_t flags = atomic_load(&page->flags);
    bool is_seen = (flags & PRELOAD_SEES_COLLECTIVES) && !(flags & PRELOAD_OTHER_COLLECTIVES);
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX && is_seen; i++)
        is_seen = !atomic_load(&page->communicators[i].id);
    return !is_seen || atomic_load(&page->collectives_under_way);
}

bool page_is_rank(const struct preload_page *page)
{
    bool is_rank = atomic_load(&page->flags) & PRELOAD_OTHER_COLLECTIVES;
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX && !is_rank; i++)
        is_rank = atomic_load(&page->communicators[i].id) &&
                  atomic_load(&page->communicators[i].n_ranks) != 1;
    return is_rank;
}

bool page_counts_collectives(const struct preload_page *page)
{
    uint32_t flags = atomic_load(&page->flags);
    return (flags & PRELOAD_SEES_COLLECTIVES) && !(flags & PRELOAD_OTHER_COLLECTIVES);
}

struct ranks {
    struct preload_page *const *pages;
    struct cut_rank counts[PAGES_HELD_MAX];
    size_t n;
    bool has_others; /* one of them uses NCCL in a way that is not counted */
    bool is_away;    /* the memory of one is not here: it can launch nothing */
};

static void read_uses(struct ranks *ranks)
{
    for (size_t i = 0; i < ranks->n; i++) {
        const struct preload_page *page = ranks->pages[i];
        ranks->has_others |= (atomic_load(&page->flags) & PRELOAD_OTHER_COLLECTIVES) != 0;
        ranks->is_away |= atomic_load(&page->carry_state) >= PRELOAD_CARRY_COPYING;
    }
}

/* Each hold has another number, so that a thread that waits reads again. */
static void hold_page(struct preload_page *page)
{
    uint32_t hold = atomic_load(&page->collectives_held) + 1;
    atomic_store(&page->collectives_held, hold ? hold : 1);
    futex_wake_all(&page->collectives_held);
}

/* The process may have changed its table meanwhile: a number is for the same communicator only. */
static void allow_count(struct preload_page *page, const struct cut_count *count)
{
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX; i++)
        if (atomic_load(&page->communicators[i].id) == count->communicator)
            atomic_store(&page->communicators[i].allowed, count->allowed);
}

static void allow_rank(struct preload_page *page, const struct cut_rank *rank)
{
    for (size_t i = 0; i < rank->n; i++)
        allow_count(page, &rank->of[i]);
    atomic_store(&preload_page_calls(page)->allowed, rank->calls_allowed);
}

static enum preload_hold_answer answer_of(const struct ranks *ranks, enum cut_answer cut)
{
    if (ranks->has_others)
        return PRELOAD_HOLD_CANNOT;
    if (cut == CUT_REACHED)
        return PRELOAD_HOLD_REACHED;
    if (ranks->is_away)
        return PRELOAD_HOLD_CANNOT;
    return cut == CUT_INCOMPLETE ? PRELOAD_HOLD_INCOMPLETE : PRELOAD_HOLD_NOT_YET;
}

enum preload_hold_answer pages_hold(struct preload_page *const *pages, size_t n)
{
    struct ranks *ranks = calloc(1, sizeof *ranks);
    if (!ranks)
        return PRELOAD_HOLD_CANNOT;
    ranks->pages = pages;
    ranks->n = n < PAGES_HELD_MAX ? n : PAGES_HELD_MAX;
    read_uses(ranks);
    for (size_t i = 0; i < ranks->n; i++)
        if (!atomic_load(&pages[i]->collectives_held))
            hold_page(pages[i]);
    for (size_t i = 0; i < ranks->n; i++)
        cut_rank_read(pages[i], &ranks->counts[i]);
    enum preload_hold_answer answer = answer_of(ranks, collective_cut(ranks->counts, ranks->n));
    for (size_t i = 0; i < ranks->n && answer != PRELOAD_HOLD_REACHED; i++) {
        allow_rank(pages[i], &ranks->counts[i]);
        hold_page(pages[i]);
    }
    free(ranks);
    return answer;
}
