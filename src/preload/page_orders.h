/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the owner of the pages orders of tasks' processes (page.h): their gates, their carriers, the
 * collectives of their ranks. For the daemon of a server and for the agent of a Slurm node. A
 * page's content may be anything; each word is read once.
 */
#ifndef COLLOC_PRELOAD_PAGE_ORDERS_H
#define COLLOC_PRELOAD_PAGE_ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "preload/collective_cut.h"
#include "preload/page.h"

/* Closes the gate; or opens it, with all collectives that are held, unless memory of the process is
 * away: that is brought back first. */
void page_set_gate(struct preload_page *page, bool is_closed);

enum preload_carry_answer {
    PRELOAD_CARRIES_DONE,
    PRELOAD_CARRIES_NOT,    /* it has no carrier, or its memory cannot be carried */
    PRELOAD_CARRIES_FAILED, /* the memory is where it was, and the next call tries again */
    PRELOAD_CARRIES_LOST,   /* it is nowhere any more */
    PRELOAD_CARRIES_STILL,  /* it is under way: to be called again */
};

/*
 * Has the carrier take its memory off the GPU, or bring it back. An order is one word: a serial
 * number and a goal. It stands in the page until another goal is wanted, so that asking again and
 * again is the same as asking once. The gate is closed.
 */
enum preload_carry_answer page_carry(struct preload_page *page, bool is_away);

/*
 * Has a copy that lies on a neighbour GPU go to the host, while the blocks stay away. Called again
 * and again, as page_carry.
 *
 * place: on the host; what it needs was handed over
 *
 * PRELOAD_CARRIES_NOT: the blocks are not away.
 */
enum preload_carry_answer page_relocate(struct preload_page *page, enum preload_place place);

/* Says where the copy of the next AWAY goes. */
void page_set_place(struct preload_page *page, enum preload_place place);

/* Can the library of the process use the place? */
bool page_can_use(const struct preload_page *page, enum preload_place place);

/* Returns where the copy of the blocks lies, which are away. */
enum preload_place page_lies(const struct preload_page *page);

/* Brings back what was left away by an owner that ended in the middle of an order, and then opens
 * the gate: of a process that is to run. To be called again and again. */
void page_heal(struct preload_page *page);

/*
 * Can the carrier take the memory away: now, or once what is under way has ended? Memory that
 * leaves, is away or comes back can be: it has been, and an order follows the one under way.
 *
 * page: NULL: the process runs without the library, which cannot
 */
bool page_can_carry(const struct preload_page *page);

/*
 * Writes why page_can_carry says no: "process 12: it uses managed memory".
 *
 * page: as there
 * pid: of its process
 *
 * Returns false, and writes nothing, when it can.
 */
bool page_explain_carrier(const struct preload_page *page, pid_t pid, char *text, size_t size);

/* Is the process in a communicator of NCCL, or may be? */
bool page_is_in_communicator(const struct preload_page *page);

/* Is it surely a rank of NCCL, beside others? */
bool page_is_rank(const struct preload_page *page);

/* Are its collectives counted? */
bool page_counts_collectives(const struct preload_page *page);

enum {
    PAGES_HELD_MAX = CUT_RANKS_MAX
}; /* as processes of a suspension (checkpoint/process_group.h) */

enum preload_hold_answer {
    PRELOAD_HOLD_REACHED,
    PRELOAD_HOLD_NOT_YET,
    PRELOAD_HOLD_INCOMPLETE,
    PRELOAD_HOLD_CANNOT,
};

/*
 * Holds the collectives of a task's ranks until all have launched the same ones: one round of the
 * rule in collective_cut.h. To be called again until it answers; they pass again when a gate is
 * opened.
 *
 * pages: all of the task, at most PAGES_HELD_MAX
 *
 * Returns PRELOAD_HOLD_REACHED: no collective is in flight that is not launched by all its ranks,
 * and none is launched any more; PRELOAD_HOLD_NOT_YET; PRELOAD_HOLD_INCOMPLETE: not yet, some ranks
 * of a communicator are elsewhere or still come; PRELOAD_HOLD_CANNOT: the processes use NCCL in a
 * way that is not counted, the memory of some is away, or memory is out.
 */
enum preload_hold_answer pages_hold(struct preload_page *const *pages, size_t n);

#endif
