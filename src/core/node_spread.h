/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of a task over several nodes: the same indices on each of them. */
#ifndef COLLOC_CORE_NODE_SPREAD_H
#define COLLOC_CORE_NODE_SPREAD_H

#include "core/view.h"

/* Is the request one for several nodes? */
static inline bool node_spread_is_wanted(const struct task_request *request)
{
    return request->nodes > 1;
}

/*
 * Finds nodes and indices such that every GPU is open: the lowest indices that are open on enough
 * nodes, and the first of these nodes.
 *
 * is_open:  may the GPU be one of them?
 * ret_gpus: room for request->gpus; node by node
 *
 * Returns false when there are none, or request->gpus is no multiple of request->nodes.
 */
bool node_spread_find(const struct cluster_view *view, const struct task_request *request,
    bool (*is_open)(const void *context, int gpu), const void *context, int *ret_gpus);

#endif
