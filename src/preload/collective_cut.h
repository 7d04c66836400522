/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the ranks of a training stop, so that no collective is in flight on any GPU. Pure: the
 * daemon copies what the ranks' pages say, asks, and writes the answer to the pages.
 *
 * A collective that one rank has launched waits on its GPU until all ranks of its communicator have
 * launched it. So if the ranks are stopped where they happen to be, one may wait for ever for
 * another that was stopped just before:
 *
 *     rank 0   launched 7 of communicator W          its GPU waits for rank 1
 *     rank 1   launched 6 of communicator W          stopped: it never comes
 *
 * The rule: calls of NCCL are held, and each rank may launch as many collectives of a communicator
 * as the rank of it that has launched most. A rank that is behind in any communicator is let in;
 * everything but NCCL's calls passes, so that it gets there. The cut is reached when no call is
 * under way and all ranks of each communicator have launched the same number.
 *
 *     rank 1 is behind (6 of 7): its next call is let in.     7, 7: the cut is reached
 *
 * "Launched" is counted when the call begins, since NCCL's first collective waits for its peers in
 * the call itself. Say that collective a comes before b if a rank launches a before b. In a program
 * that does not deadlock by itself this has no circle, over all communicators. Then:
 *
 * - No deadlock. While the cut is not reached, some rank is behind. It is let in, so it goes on to
 *   its next collective, unless its program waits for one that it has launched: w. Then a rank of w
 *   has not launched w. That rank is behind too, and is let in; if it waits as well, then for one
 *   that it launched before, which comes before w. There is no circle, so this ends at a rank that
 *   goes on.
 * - It ends. Take all collectives that any rank has launched when calls are held, or whose call had
 *   been let in, and all that come before them: a finite set. A rank that is let in has not
 *   launched one of them, b, that another rank has, or soon will have. What it launches is b or
 *   comes before b, so it is in the set as well; so no more than the set is ever launched. (Where
 *   several threads call NCCL, another thread may launch more until the one that is behind gets
 *   there.)
 * - It is kept. When all have launched the same, no rank is behind, and no call is let in.
 *
 * tests/unit/preload/test_collective_cut.c checks this for random programs and interleavings.
 *
 * What is not covered is refused by the caller: sends and receives, whose counts differ between
 * ranks by nature; collectives in CUDA graphs, which are launched without a call of NCCL;
 * communicators with ranks elsewhere. A collective that was not counted is not a danger: it is in
 * flight when the GPU is to become idle, which then does not happen within its time.
 */
#ifndef COLLOC_PRELOAD_COLLECTIVE_CUT_H
#define COLLOC_PRELOAD_COLLECTIVE_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/page.h"

/* One process of the task. */
struct cut_rank {
    bool is_under_way; /* a call of NCCL that was let in has not returned */
    size_t n;
    struct cut_count {
        uint64_t communicator; /* not 0 */
        uint32_t n_ranks;      /* 0: not known */
        uint64_t launched;
        uint64_t allowed; /* the answer: it may launch up to this number */
    } of[PRELOAD_COMMUNICATORS_MAX];
};

enum cut_answer {
    CUT_REACHED,
    CUT_NOT_YET,
    CUT_INCOMPLETE, /* some ranks of a communicator are not among these processes: not yet, or they
                       are elsewhere */
};

/*
 * Sets `allowed` of all ranks by what they have launched.
 *
 * Contract:
 * 1. `allowed` never becomes smaller while calls are held, if the counts are those of one hold.
 * 2. After CUT_REACHED nothing is launched until the hold ends, whatever the order in which the
 *    ranks were read.
 */
enum cut_answer collective_cut(struct cut_rank *ranks, size_t n);

/* Of the process: is a call of NCCL let in while calls are held? */
static inline bool cut_is_behind(const struct preload_page *page)
{
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX; i++)
        if (atomic_load(&page->communicators[i].launched) <
            atomic_load(&page->communicators[i].allowed))
            return true;
    return false;
}

/* Copies what a page says, which may be anything. */
void cut_rank_read(const struct preload_page *page, struct cut_rank *ret_rank);

#endif
