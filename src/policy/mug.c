/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most utilised GPU (thesis 6.2.2, "MUG"): fills the busy GPUs first, so that idle ones stay idle.
 * Among equally active GPUs the one with less free memory goes first, as in best fit.
 */
#include <stddef.h>

#include "policy/backfill.h"
#include "policy/conditions.h"
#include "policy/gpu_activity.h"
#include "policy/policies.h"

static bool is_fuller(const struct placement_query *query, int a, int b)
{
    const struct gpu_view *gpus = query->view->gpus;
    double of_a = gpu_activity(&gpus[a]), of_b = gpu_activity(&gpus[b]);
    if (of_a > of_b || of_a < of_b)
        return of_a > of_b;
    return reading_assume(gpu_view_free_bytes(&gpus[a]), 0) <
           reading_assume(gpu_view_free_bytes(&gpus[b]), 0);
}

static enum placement_answer choose(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    return conditions_choose(query, is_fuller, NULL, ret_gpus, ret_verdicts);
}

const struct policy policy_mug = {
    .name = "mug",
    .help =
        "most utilised GPU among those that meet the conditions: consolidates, idle GPUs stay idle",
    .choose = choose,
    .reserve = backfill_reserve,
};
