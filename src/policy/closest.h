/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses nearby GPUs for a task with several, among equally good ones. */
#ifndef COLLOC_POLICY_CLOSEST_H
#define COLLOC_POLICY_CLOSEST_H

#include "core/view.h"

/* Does it matter which of equally good GPUs a task of `wanted` gets? */
static inline bool closest_matters(const struct cluster_view *view, int wanted)
{
    return wanted > 1 && view->distances;
}

/*
 * Completes a set of GPUs by those that make it closest.
 *
 * gpus:       the first `n` are set and stay; `wanted` are set when it returns
 * candidates: `count` GPUs that are equally good, at least as many as are missing, none of them set
 *             yet
 */
void closest_complete(const struct cluster_view *view, int *gpus, int n, int wanted,
    const int *candidates, int count);

#endif
