/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most policies order GPUs by free memory or by activity, in which idle GPUs of a server hardly
 * differ: which of them a task gets is left to chance or to a few MiB. Where the kinds differ in
 * speed (core/kind_speed.h), the faster one is the better one.
 *
 * An example. GPU 0 is an A100 with 80 GiB, GPUs 1 and 2 are H100s with a little less. The policy
 * magm chooses GPU 0, since it has most free memory; a task of one GPU gets GPU 1. If a task is on
 * GPUs 1 and 2 and more is free there than on GPU 0, magm's choice is to join it, and stays.
 *
 * A task of several GPUs is as fast as the slowest: it gets GPUs of one kind, or the policy's
 * choice where no kind has enough idle ones.
 */
#include "policy/fast_idle.h"

#include <math.h>
#include <string.h>

#include "core/kind_speed.h"
#include "policy/closest.h"

static bool is_idle_and_fits(const struct placement_query *query, int i)
{
    return gpu_view_is_idle(&query->view->gpus[i]) &&
           conditions_check(query, i).kind == VERDICT_FITS;
}

/* The speed of the slowest GPU; INFINITY when one is not idle. */
static double speed_of_idle(const struct cluster_view *view, const int *gpus, int n)
{
    double slowest = INFINITY;
    for (int i = 0; i < n; i++) {
        if (!gpu_view_is_idle(&view->gpus[gpus[i]]))
            return INFINITY;
        slowest = fmin(slowest, kind_speed_of(view, gpus[i]));
    }
    return slowest;
}

/* Lists the GPUs of that speed, at most VIEW_DISTANCES_MAX. Returns how many. */
static int list_idle_of(const struct placement_query *query, double speed, int *ret_gpus)
{
    int n = 0;
    for (int i = query->first_gpu; i < placement_end_gpu(query) && n < VIEW_DISTANCES_MAX; i++)
        if (kind_speed_of(query->view, i) == speed && is_idle_and_fits(query, i))
            ret_gpus[n++] = i;
    return n;
}

/* Replaces the choice, if it is of idle GPUs, by GPUs of the fastest kind that has enough. */
static void replace_by_faster(const struct placement_query *query, int *gpus)
{
    const struct cluster_view *view = query->view;
    int idle[VIEW_DISTANCES_MAX], wanted = placement_wanted(query);
    double fastest = speed_of_idle(view, gpus, wanted);
    for (int i = query->first_gpu; i < placement_end_gpu(query); i++) {
        double speed = kind_speed_of(view, i);
        int n = speed > fastest ? list_idle_of(query, speed, idle) : 0;
        if (n < wanted)
            continue;
        fastest = speed;
        memcpy(gpus, idle, (size_t)wanted * sizeof *gpus);
        if (closest_matters(view, wanted))
            closest_complete(view, gpus, 0, wanted, idle, n);
    }
}

enum placement_answer fast_idle_choose(const struct placement_query *query,
    conditions_before *before, conditions_unbeaten *unbeaten, int *ret_gpus,
    struct verdict *ret_verdicts)
{
    enum placement_answer answer = conditions_choose(
        query, before, unbeaten, ret_gpus, ret_verdicts);
    if (answer == PLACE_NOW && query->view->speed_max)
        replace_by_faster(query, ret_gpus);
    return answer;
}
