/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a policy for the GPUs of a task in a cluster of many servers.
 *
 * A task of several GPUs runs on one node, so its policy is asked about one node after the other,
 * in their order; a task of one GPU has the choice among all GPUs at once. On a single server both
 * are the same.
 *
 * For a task over several nodes the policy is asked about each GPU alone, as if the task requested
 * only that one: this finds the open GPUs. Which of these the task gets is node_spread.c's
 * decision, idle ones first: the task runs at the speed of its slowest GPU.
 *
 * An example. Nodes a and b of two GPUs each; GPU a:1 and all of b are idle. A task of two GPUs is
 * not placed on a, where one is free, and gets b:0 and b:1. Asked about all GPUs at once, a policy
 * might have chosen a:1 and b:0.
 */
#include "core/node_choice.h"

#include <stdlib.h>

#include "core/node_spread.h"

static bool is_of_one_node(const struct placement_query *query)
{
    return query->task->request.gpus == 1 || query->view->n_gpus == 0;
}

/* ---- tasks over several nodes ---- */

/* The query of the same task about one GPU. */
static struct placement_query query_about_gpu(const struct placement_query *query, int gpu)
{
    struct placement_query single = *query;
    single.on_one_gpu = true;
    single.first_gpu = gpu;
    single.end_gpu = gpu + 1;
    return single;
}

struct open_gpus {
    const struct gpu_view *gpus;
    const struct verdict *verdicts;
    bool idle_only;
};

static bool is_open(const void *context, int gpu)
{
    const struct open_gpus *open = context;
    return open->verdicts[gpu].kind == VERDICT_FITS &&
           (!open->idle_only || gpu_view_is_idle(&open->gpus[gpu]));
}

static enum placement_answer choose_over_nodes(const struct policy *policy,
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    struct open_gpus open = {query->view->gpus, ret_verdicts, true};
    int chosen;
    for (int i = 0; i < query->view->n_gpus; i++) {
        struct placement_query single = query_about_gpu(query, i);
        if (policy->choose(&single, &chosen, ret_verdicts) == PLACE_NOW)
            ret_verdicts[i] = (struct verdict){.kind = VERDICT_FITS};
    }
    if (node_spread_find(query->view, &query->task->request, is_open, &open, ret_gpus))
        return PLACE_NOW;
    open.idle_only = false;
    return node_spread_find(query->view, &query->task->request, is_open, &open, ret_gpus)
               ? PLACE_NOW
               : PLACE_WAIT;
}

/* When each GPU is predicted to admit the task, or NEVER_OPENS. */
struct openings {
    int64_t *at_us;
    int64_t until_us;
};

#define NEVER_OPENS (-1)

static bool opens_in_time(const void *context, int gpu)
{
    const struct openings *openings = context;
    return openings->at_us[gpu] != NEVER_OPENS && openings->at_us[gpu] <= openings->until_us;
}

/* The next later time at which a GPU opens; `until_us` when there is none. */
static int64_t next_opening(const struct openings *openings, int n_gpus)
{
    int64_t next_us = openings->until_us;
    for (int i = 0; i < n_gpus; i++)
        if (openings->at_us[i] > openings->until_us &&
            (next_us == openings->until_us || openings->at_us[i] < next_us))
            next_us = openings->at_us[i];
    return next_us;
}

/* The first time at which enough GPUs have opened. */
static bool reserve_over_nodes(const struct policy *policy, const struct placement_query *query,
    int *ret_gpus, int64_t *ret_start_us)
{
    int n = query->view->n_gpus, chosen;
    struct openings openings = {calloc((size_t)n + 1, sizeof *openings.at_us), query->now_us};
    bool is_found = false, is_later = openings.at_us;
    for (int i = 0; i < n && openings.at_us; i++) {
        struct placement_query single = query_about_gpu(query, i);
        if (!policy->reserve(&single, &chosen, &openings.at_us[i]))
            openings.at_us[i] = NEVER_OPENS;
    }
    while (is_later && !is_found) {
        *ret_start_us = openings.until_us;
        is_found = node_spread_find(
            query->view, &query->task->request, opens_in_time, &openings, ret_gpus);
        openings.until_us = next_opening(&openings, n);
        is_later = openings.until_us > *ret_start_us;
    }
    free(openings.at_us);
    return is_found;
}

/* ---- all tasks ---- */

enum placement_answer node_choice_choose(const struct policy *policy,
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    struct placement_query of_node = *query;
    if (node_spread_is_wanted(&query->task->request))
        return choose_over_nodes(policy, query, ret_gpus, ret_verdicts);
    if (is_of_one_node(query))
        return policy->choose(query, ret_gpus, ret_verdicts);
    for (int first = 0; first < query->view->n_gpus; first = of_node.end_gpu) {
        of_node.first_gpu = first;
        of_node.end_gpu = cluster_view_node_end(query->view, first);
        if (policy->choose(&of_node, ret_gpus, ret_verdicts) == PLACE_NOW)
            return PLACE_NOW;
    }
    return PLACE_WAIT;
}

/* Finds the node on which the task is predicted to start first, then asks for its GPUs again. */
bool node_choice_reserve(const struct policy *policy, const struct placement_query *query,
    int *ret_gpus, int64_t *ret_start_us)
{
    struct placement_query of_node = *query, best = *query;
    bool is_found = false;
    int64_t start_us;
    if (node_spread_is_wanted(&query->task->request))
        return reserve_over_nodes(policy, query, ret_gpus, ret_start_us);
    if (is_of_one_node(query))
        return policy->reserve(query, ret_gpus, ret_start_us);
    for (int first = 0; first < query->view->n_gpus; first = of_node.end_gpu) {
        of_node.first_gpu = first;
        of_node.end_gpu = cluster_view_node_end(query->view, first);
        if (!policy->reserve(&of_node, ret_gpus, &start_us) ||
            (is_found && start_us >= *ret_start_us))
            continue;
        is_found = true;
        *ret_start_us = start_us;
        best = of_node;
    }
    return is_found && policy->reserve(&best, ret_gpus, ret_start_us);
}
