/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a policy for GPUs of one node, or of several (core/view_data.h, gpu_identity). */
#ifndef COLLOC_CORE_NODE_CHOICE_H
#define COLLOC_CORE_NODE_CHOICE_H

#include "core/policy.h"

/* The policy's `choose` (core/policy.h), with all GPUs of a task on the first node that can take
 * it; or on as many nodes as it wants (node_spread.h). Returns as `choose` does. */
enum placement_answer node_choice_choose(const struct policy *policy,
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts);

/* The policy's `reserve`, with all GPUs on the node or the nodes on which it is predicted to start
 * first. Returns as `reserve` does. */
bool node_choice_reserve(const struct policy *policy, const struct placement_query *query,
    int *ret_gpus, int64_t *ret_start_us);

#endif
