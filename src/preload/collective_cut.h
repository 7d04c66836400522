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
 * Sends and receives. A send waits for its receive, and the other way round: what two ranks have
 * launched of a channel (message_page.h) is compared as what they have launched of a communicator
 * of both. Only, the other end may have no count yet, since it has never used this channel, so that
 * the daemon cannot let it in by a count. It lets it in by calls instead: each round allows one
 * more call than the rank has made when it was read. A rank is thus only let in if it is behind at
 * its next call, as with counts.
 *
 *     rank 0   sent 3 to rank 1; 40 calls      its GPU waits for rank 1
 *     rank 1   received 2; 17 calls            behind: its 18th call is let in
 *
 * The calls of a group are launched together, and may make other ranks behind. So the finite set of
 * the proof has each group with all that it launches. A program in which each group of each rank
 * reaches into the next one of another rank, for ever, has no cut; the daemon gives up after its
 * time. Known trainings end each step with a collective of all, which no group reaches over.
 *
 * Communicators. A call that makes or ends one launches nothing and is never held, but it may wait
 * for ranks that are held elsewhere:
 *
 *     rank 2   makes a communicator with rank 1        waits in the call
 *     rank 1   before a collective with rank 0         held; neither 0 nor 1 is behind
 *
 * So while such a call is under way, each round allows every rank one more call, as if nothing were
 * held. It ends, since a rank makes few communicators, nearly all of them at its begin.
 *
 * CUDA graphs. What is captured counts once when it is captured, since NCCL may wait for its peers
 * then, and again with each launch of the graph, which is one call (graph_collectives.h). NCCL
 * wants both to be done by all ranks of what was captured.
 *
 * tests/unit/preload/test_collective_cut.c checks this for random programs and interleavings.
 *
 * What is not covered is refused by the caller: communicators with ranks elsewhere. A collective
 * that was not counted is not a danger: it is in flight when the GPU is to become idle, which then
 * does not happen within its time.
 */
#ifndef COLLOC_PRELOAD_COLLECTIVE_CUT_H
#define COLLOC_PRELOAD_COLLECTIVE_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/message_page.h"
#include "preload/page.h"

enum { CUT_RANKS_MAX = 64 }; /* processes */

/* One process of the task. */
struct cut_rank {
    bool is_under_way;      /* a call of NCCL that was let in has not returned */
    bool is_joining;        /* such a call makes or ends a communicator */
    uint64_t calls;         /* that were let in and are counted: not more than were let in */
    uint64_t calls_allowed; /* as read from the page; then the answer. 0: none by this */
    size_t n, n_channels;
    struct cut_count {
        uint64_t communicator; /* not 0 */
        uint32_t n_ranks;      /* 0: not known */
        uint32_t place;        /* which of them it is, and 1; 0: not known */
        uint64_t launched;
        uint64_t allowed; /* as read; then the answer: it may launch up to this number */
    } of[PRELOAD_COMMUNICATORS_MAX];
    struct cut_channel {
        uint64_t communicator;
        uint64_t launched;
        uint32_t ends; /* message_ends */
    } channels[PRELOAD_CHANNELS_MAX];
};

enum cut_answer {
    CUT_REACHED,
    CUT_NOT_YET,
    CUT_INCOMPLETE, /* some ranks of a communicator are not among these processes: not yet, or they
                       are elsewhere */
};

/*
 * Sets `allowed` and `calls_allowed` of all ranks by what they have launched.
 *
 * n: at most CUT_RANKS_MAX
 *
 * Contract:
 * 1. `allowed` never becomes smaller while calls are held, if the counts are those of one hold;
 *    `calls_allowed` may.
 * 2. After CUT_REACHED nothing is launched until the hold ends, whatever the order in which the
 *    ranks were read.
 */
enum cut_answer collective_cut(struct cut_rank *ranks, size_t n);

/* Of the process, `n_calls` of whose calls of NCCL were let in: is the next one let in while calls
 * are held? */
static inline bool cut_is_behind(const struct preload_page *page, uint64_t n_calls)
{
    if (n_calls < atomic_load(&preload_page_calls(page)->allowed))
        return true;
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX; i++)
        if (atomic_load(&page->communicators[i].launched) <
            atomic_load(&page->communicators[i].allowed))
            return true;
    return false;
}

/* Copies what a page says, which may be anything. */
void cut_rank_read(const struct preload_page *page, struct cut_rank *ret_rank);

#endif
