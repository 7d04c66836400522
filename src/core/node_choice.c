/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking a policy for the GPUs of a task in a cluster of many servers.
 *
 * A task of several GPUs runs on one node, so its policy is asked about one node after the other,
 * in their order; a task of one GPU has the choice among all GPUs at once. On a single server both
 * are the same.
 *
 * An example. Nodes a and b of two GPUs each; GPU a:1 and all of b are idle. A task of two GPUs is
 * not placed on a, where one is free, and gets b:0 and b:1. Asked about all GPUs at once, a policy
 * might have chosen a:1 and b:0.
 */
#include "core/node_choice.h"

static bool is_of_one_node(const struct placement_query *query)
{
    return query->task->request.gpus == 1 || query->view->n_gpus == 0;
}

enum placement_answer node_choice_choose(const struct policy *policy,
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    struct placement_query of_node = *query;
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
