/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collectives, sends and receives of NCCL that this process launches, counted for each
 * communicator and channel, and the hold that stops all ranks of a training at the same counts
 * (collective_cut.h has the order).
 *
 * A rank whose collective has begun on its GPU waits there for its peers. So a peer that was
 * stopped before the same collective would keep it waiting for ever. While the daemon holds
 * collectives, a call of NCCL is let in only if the process is behind: it has launched fewer
 * collectives of some communicator than another rank of it, or the daemon allows one more call. All
 * other calls of the driver pass, so that a rank that is behind gets to its next collective. The
 * launch of a CUDA graph with collectives in it is such a call, too.
 *
 *     collectives_enter      under way; held? not behind? -> not under way, wait, again
 *       collectives_add      counted: its peers are let in from now on, as NCCL's first collective
 *                            waits for them in the call itself
 *       collectives_close    all of the call, or of the group, is counted
 *     collectives_leave      all of it is launched: not under way any more
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

#include "preload/graph_collectives.h"
#include "preload/message_page.h"
#include "preload/page.h"

struct process_state;

/* Of a process; all zero at first. With the state's lock. */
struct collectives {
    struct communicator {
        void *handle; /* ncclComm_t; NULL: unused */
        uint64_t id, launched;
        uint32_t n_ranks, place; /* as in the page */
        uint32_t n_splits;
    } communicators[PRELOAD_COMMUNICATORS_MAX];
    struct channel {
        uint64_t communicator, launched; /* 0: unused */
        uint32_t ends;
    } channels[PRELOAD_CHANNELS_MAX];
    uint64_t calls_begun, calls_counted;
    uint32_t under_way, joining;
    struct graph_collectives graphs;
};

/* What NCCL says of a communicator; 0: nothing yet. */
struct communicator_size {
    uint32_t n_ranks, place;
};
typedef struct communicator_size measure_communicator(void *handle);

/* Which ranks a message is between; collectives: none. */
enum message_kind { MESSAGE_NONE, MESSAGE_SENT, MESSAGE_RECEIVED };
struct message {
    enum message_kind kind;
    int peer;
};

/* The outermost call of NCCL of this thread begins, has nothing more to count, or ends. */
void collectives_enter(void);
void collectives_close(void);
void collectives_leave(void);

/* As collectives_enter, but never held: all ranks of a communicator must make the call, which
 * launches nothing, and waits for them. */
void collectives_join(void);

/*
 * A collective, or a send or receive, of the communicator belongs to the call that is under way.
 *
 * capture: of its stream (stream_capture.h); 0: none
 */
void collectives_add(
    void *handle, struct message message, uint64_t capture, measure_communicator *measure);

/* A communicator is there. `id`: not 0. `size`: what is known of it. */
void collectives_note_communicator(void *handle, uint64_t id, struct communicator_size size);

/* Returns a number for a part of the communicator, the same in all ranks of that part. */
uint64_t collectives_split_id(void *handle, int colour);

/* It is about to be destroyed. */
void collectives_forget_communicator(void *handle);

/* ---- CUDA graphs ---- */

/* Returns whether a graph of this process, or a capture, may have collectives. */
bool collectives_are_in_graphs(void);

/* The capture has ended with this graph; NULL: with an error. */
void collectives_end_capture(uint64_t capture, void *graph);

/* The executable was made of the graph. */
void collectives_instantiate(void *graph, void *executable);

void collectives_forget_graph(enum graph_kind kind, void *handle);

/* Returns whether it launches collectives. */
bool collectives_has_graph(void *executable);

/* The launch of the graph is the call that is under way. */
void collectives_add_graph(void *executable);

/* NCCL is used in a way that is not counted. */
void collectives_note_other(void);

/* Copies what the daemon has to know to a page; with the lock. */
void collectives_publish(struct process_state *state, struct preload_page *page);

/* Returns a number for any bytes, never 0. */
uint64_t collectives_hash(const void *bytes, size_t size);

#endif
