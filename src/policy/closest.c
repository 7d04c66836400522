/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses, of GPUs that are equally good, those that are nearest to each other. The processes of a
 * training on several GPUs exchange their gradients after each step, at the speed of the slowest
 * connection. A set of GPUs is therefore the closer the smaller its largest distance is, and of
 * those with the same the smaller the sum of all.
 *
 * The search is greedy from each possible first GPU: always the nearest one is added. That finds
 * the closest set wherever GPUs form groups (pairs with NVLink, the GPUs of a NUMA node).
 *
 * An example: GPUs 0 and 2 have NVLink, and 1 and 3; all four are idle. A task of two GPUs gets 0
 * and 2. If GPU 0 is not free, it gets 1 and 3, not 1 and 2.
 */
#include "policy/closest.h"

#include <limits.h>
#include <string.h>

/* How far apart a set is. */
struct spread {
    int most; /* the largest distance of two GPUs */
    int sum;
};

static bool is_closer(const struct spread *a, const struct spread *b)
{
    return a->most != b->most ? a->most < b->most : a->sum < b->sum;
}

static struct spread spread_with(
    const struct cluster_view *view, const int *gpus, int n, int added, struct spread spread)
{
    for (int i = 0; i < n; i++) {
        int distance = cluster_view_distance(view, gpus[i], added);
        spread.most = distance > spread.most ? distance : spread.most;
        spread.sum += distance;
    }
    return spread;
}

/* Completes the set with the nearest candidates, one after the other. */
static struct spread add_nearest(const struct cluster_view *view, int *gpus, int n, int wanted,
    const int *candidates, int count, struct spread spread)
{
    for (; n < wanted; n++) {
        struct spread best = {INT_MAX, INT_MAX};
        for (int i = 0; i < count; i++) {
            bool is_in = false;
            for (int k = 0; k < n; k++)
                is_in |= gpus[k] == candidates[i];
            struct spread with = spread_with(view, gpus, n, candidates[i], spread);
            if (!is_in && is_closer(&with, &best)) {
                best = with;
                gpus[n] = candidates[i];
            }
        }
        spread = best;
    }
    return spread;
}

void closest_complete(
    const struct cluster_view *view, int *gpus, int n, int wanted, const int *candidates, int count)
{
    int tried[VIEW_DISTANCES_MAX];
    struct spread best = {INT_MAX, INT_MAX};
    int missing = wanted - n;
    if (missing <= 0 || wanted > VIEW_DISTANCES_MAX)
        return;
    memcpy(tried, gpus, (size_t)n * sizeof *tried);
    for (int i = 0; i < count; i++) {
        struct spread first = {0, 0};
        for (int k = 0; k < n; k++)
            first = spread_with(view, gpus, k, gpus[k], first);
        tried[n] = candidates[i];
        first = spread_with(view, tried, n, candidates[i], first);
        struct spread all = add_nearest(view, tried, n + 1, wanted, candidates, count, first);
        if (!is_closer(&all, &best))
            continue;
        best = all;
        memcpy(gpus + n, tried + n, (size_t)missing * sizeof *gpus);
    }
}
