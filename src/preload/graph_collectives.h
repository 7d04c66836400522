/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of NCCL's each CUDA graph of the process launches: a collective that is called while its
 * stream is being captured runs with each launch of the graph, without a call of NCCL.
 *
 *     cuStreamBeginCapture            capture 7
 *     ncclAllReduce, 50 times         capture 7: 50 of communicator W
 *     cuStreamEndCapture              graph G: 50 of W
 *     cuGraphInstantiate              executable E: 50 of W; so has each other one of G
 *     cuGraphLaunch of E              50 collectives of W are launched (collectives.c)
 *
 * What is added to other graphs (cuGraphAddChildGraphNode, cuGraphClone) is not followed: such a
 * graph launches collectives that are not counted. collective_cut.h says why that is no danger.
 *
 * A table without a lock: the caller has one.
 */
#ifndef COLLOC_PRELOAD_GRAPH_COLLECTIVES_H
#define COLLOC_PRELOAD_GRAPH_COLLECTIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Chosen: more than a training has graphs with collectives; and a graph with messages of each of
 * 16 ranks to all others. */
enum { GRAPHS_MAX = 128, GRAPH_LAUNCHES_MAX = 32 };

enum graph_kind { GRAPH_NONE, GRAPH_CAPTURE, GRAPH_MADE, GRAPH_EXECUTABLE };

/* Collectives of a communicator, or sends or receives of one of its channels. */
struct graph_launch {
    uint64_t communicator;
    uint32_t ends; /* message_ends; 0: collectives. No rank sends to itself by a channel */
    uint32_t count;
};

/* All zero: none. */
struct graph_collectives {
    struct graph {
        enum graph_kind kind;
        uint64_t key; /* the number of a capture, or a handle */
        size_t n;
        struct graph_launch launches[GRAPH_LAUNCHES_MAX];
    } graphs[GRAPHS_MAX];
};

/* Returns what it launches, or NULL: nothing. */
const struct graph *graph_find(
    const struct graph_collectives *table, enum graph_kind kind, uint64_t key);

/* It launches this, too. Returns false when there is no place for it. */
bool graph_add(struct graph_collectives *table, enum graph_kind kind, uint64_t key,
    const struct graph_launch *launch);

/* The second one launches what the first one does, beside what it did. Returns false when there is
 * no place for all of it. */
bool graph_copy(struct graph_collectives *table, enum graph_kind from_kind, uint64_t from,
    enum graph_kind to_kind, uint64_t to);

/* It is no more: its handle may be used again. */
void graph_forget(struct graph_collectives *table, enum graph_kind kind, uint64_t key);

/* None of this kind is left. */
void graph_forget_all(struct graph_collectives *table, enum graph_kind kind);

#endif
