/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collectives of NCCL that this process launches, counted for each communicator, and the hold
 * that stops all ranks of a training at the same count (collective_cut.h has the order).
 *
 * A rank whose collective has begun on its GPU waits there for its peers. So a peer that was
 * stopped before the same collective would keep it waiting for ever. While the daemon holds
 * collectives, a call of NCCL is let in only if the process is behind: it has launched fewer
 * collectives of some communicator than another rank of it. All other calls of the driver pass, so
 * that a rank that is behind gets to its next collective.
 *
 *     collectives_enter      under way; held? not behind? -> not under way, wait, again
 *       collectives_add      counted: its peers are let in from now on, as NCCL's first collective
 *                            waits for them in the call itself
 *     collectives_leave      all of the group are launched: not under way any more
 *
 * Contract:
 * 1. Between collectives_enter and collectives_leave the page says that a call is under way. Counts
 *    never become smaller, also if the call fails.
 * 2. A thread writes that its call is under way and then reads whether calls are held; the daemon
 *    holds them and then reads whether one is under way. So one of the two sees the other.
 * 3. A hold ends with the daemon: nothing has been taken away yet.
 */
#ifndef COLLOC_PRELOAD_COLLECTIVES_H
#define COLLOC_PRELOAD_COLLECTIVES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/page.h"

struct process_state;

/* Of a process; all zero at first. With the state's lock. */
struct collectives {
    struct communicator {
        void *handle; /* ncclComm_t; NULL: unused */
        uint64_t id, launched;
        uint32_t n_ranks, n_splits;
    } communicators[PRELOAD_COMMUNICATORS_MAX];
    uint32_t under_way;
};

/* The outermost call of NCCL of this thread begins or ends. */
void collectives_enter(void);
void collectives_leave(void);

/* As collectives_enter, but never held: all ranks must make the call, which launches nothing. */
void collectives_enter_unheld(void);

/* A collective of the communicator belongs to the call that is under way. */
void collectives_add(void *handle, uint32_t (*count_ranks)(void *handle));

/* A communicator is there. `id`: not 0. */
void collectives_note_communicator(void *handle, uint64_t id, uint32_t n_ranks);

/* Returns a number for a part of the communicator, the same in all ranks of that part. */
uint64_t collectives_split_id(void *handle, int colour);

/* It is about to be destroyed. */
void collectives_forget_communicator(void *handle);

/* NCCL is used in a way that is not counted. */
void collectives_note_other(void);

/* Copies what the daemon has to know to a page; with the lock. */
void collectives_publish(struct process_state *state, struct preload_page *page);

/* Returns a number for any bytes, never 0. */
uint64_t collectives_hash(const void *bytes, size_t size);

#endif
