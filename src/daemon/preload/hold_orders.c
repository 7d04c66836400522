/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds the collectives of a task's ranks until all have launched the same ones: one round of the
 * rule in preload/collective_cut.h, by the pages of its processes.
 */
#include <stdlib.h>

#include "daemon/preload/preload_state.h"
#include "preload/collective_cut.h"
#include "preload/futex.h"

enum { RANKS_MAX = 64 }; /* as processes of a suspension (checkpoint/process_group.h) */

struct ranks {
    struct preload_page *pages[RANKS_MAX];
    struct cut_rank counts[RANKS_MAX];
    size_t n;
    bool has_others; /* one of them uses NCCL in a way that is not counted */
    bool is_away;    /* the memory of one is not here: it can launch nothing */
};

static void find_ranks(struct preload_manager *manager, uint64_t task, struct ranks *ret_ranks)
{
    struct preload_process *process = NULL;
    while (manager->listener && (process = preload_next_process(manager->listener, process))) {
        if (process->peer.task != task || ret_ranks->n == RANKS_MAX)
            continue;
        struct preload_page *page = process->page;
        ret_ranks->pages[ret_ranks->n++] = page;
        ret_ranks->has_others |= (atomic_load(&page->flags) & PRELOAD_OTHER_COLLECTIVES) != 0;
        ret_ranks->is_away |= atomic_load(&page->carry_state) >= PRELOAD_CARRY_COPYING;
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

enum preload_hold_answer preload_manager_hold(struct preload_manager *manager, uint64_t task)
{
    struct ranks *ranks = calloc(1, sizeof *ranks);
    if (!ranks)
        return PRELOAD_HOLD_NOT_YET;
    find_ranks(manager, task, ranks);
    for (size_t i = 0; i < ranks->n; i++)
        if (!atomic_load(&ranks->pages[i]->collectives_held))
            hold_page(ranks->pages[i]);
    for (size_t i = 0; i < ranks->n; i++)
        cut_rank_read(ranks->pages[i], &ranks->counts[i]);
    enum preload_hold_answer answer = answer_of(ranks, collective_cut(ranks->counts, ranks->n));
    for (size_t i = 0; i < ranks->n && answer != PRELOAD_HOLD_REACHED; i++) {
        for (size_t k = 0; k < ranks->counts[i].n; k++)
            allow_count(ranks->pages[i], &ranks->counts[i].of[k]);
        hold_page(ranks->pages[i]);
    }
    free(ranks);
    return answer;
}
