/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm gives a job one request for GPUs that holds on each of its nodes: "GPUs 0 and 2 of each". A
 * task over several nodes therefore has GPUs of the same indices on all of them.
 *
 * The open GPUs of a node are a set of indices, and the sets of all nodes are searched for indices
 * that enough nodes have open. Indices are added one by one, the lowest first; a set that too few
 * nodes have open is given up with all that contain it.
 *
 * An example. Two GPUs on each of two nodes are wanted. Open are 1, 2, 3 on node a, 0, 1, 3 on node
 * b and 0, 2 on node c. Index 0 is open on b and c, but 0 with any other is open on one at most. 1
 * and 3 are open on a and b.
 */
#include "core/node_spread.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* Chosen: each costs a comparison for each node; all pairs and triples of 16 indices are fewer. */
enum { SETS_TRIED_MAX = 1024 };

struct search {
    const uint64_t *open; /* of each node: its open indices */
    int n_nodes;
    uint64_t open_anywhere;
    int nodes, indices; /* wanted */
    int tries_left;
};

static bool is_open_on_enough(const struct search *search, uint64_t set)
{
    int n = 0;
    for (int i = 0; i < search->n_nodes && n < search->nodes; i++)
        n += (search->open[i] & set) == set;
    return n == search->nodes;
}

/* Completes the set of `n` indices by some from `first` on. Returns 0 when that cannot be. */
static uint64_t complete_set(struct search *search, uint64_t set, int n, int first)
{
    if (n == search->indices)
        return set;
    for (int i = first; i < NODE_INDEX_MAX; i++) {
        uint64_t larger = set | UINT64_C(1) << i, found = 0;
        if (!(search->open_anywhere >> i & 1))
            continue;
        if (search->tries_left-- <= 0)
            return 0;
        if (is_open_on_enough(search, larger))
            found = complete_set(search, larger, n + 1, i + 1);
        if (found)
            return found;
    }
    return 0;
}

/* Lists the set's GPUs on the first nodes that have all of them open. */
static void list_gpus(
    const struct cluster_view *view, const struct search *search, uint64_t set, int *ret_gpus)
{
    int n = 0, node = 0, wanted = search->nodes * search->indices;
    for (int first = 0, end; first < view->n_gpus && n < wanted; first = end, node++) {
        end = cluster_view_node_end(view, first);
        for (int i = first; i < end && (search->open[node] & set) == set; i++)
            if (set >> view->gpus[i].id.index_on_node & 1)
                ret_gpus[n++] = i;
    }
}

bool node_spread_find(const struct cluster_view *view, const struct task_request *request,
    bool (*is_open)(const void *context, int gpu), const void *context, int *ret_gpus)
{
    CLEANUP_FREE uint64_t *open = calloc((size_t)view->n_gpus + 1, sizeof *open);
    struct search search = {.open = open,
        .nodes = request->nodes,
        .indices = request->gpus / request->nodes,
        .tries_left = SETS_TRIED_MAX};
    if (!open || request->gpus % request->nodes)
        return false;
    for (int first = 0, end; first < view->n_gpus; first = end, search.n_nodes++) {
        end = cluster_view_node_end(view, first);
        for (int i = first; i < end; i++)
            if (!view->gpus[i].id.is_mig_instance && is_open(context, i))
                open[search.n_nodes] |= UINT64_C(1) << view->gpus[i].id.index_on_node;
        search.open_anywhere |= open[search.n_nodes];
    }
    uint64_t set = complete_set(&search, 0, 0, 0);
    if (set)
        list_gpus(view, &search, set, ret_gpus);
    return set;
}
