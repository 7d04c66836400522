/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least utilised GPU (dissertation 6.2.2, "LUG"): of the GPUs that meet the conditions the one with
 * the lowest SMACT. Among equally active GPUs the one with more free memory comes first: an idle
 * GPU before one whose task does not compute yet.
 */
#include <stddef.h>

#include "policy/backfill.h"
#include "policy/conditions.h"
#include "policy/fast_idle.h"
#include "policy/gpu_activity.h"
#include "policy/policies.h"

static bool less_active(const struct placement_query *query, int a, int b)
{
    const struct gpu_view *gpus = query->view->gpus;
    double of_a = gpu_activity(&gpus[a]), of_b = gpu_activity(&gpus[b]);
    if (of_a < of_b || of_a > of_b)
        return of_a < of_b;
    return reading_assume(conditions_left_bytes(query, &gpus[a]), 0) >
           reading_assume(conditions_left_bytes(query, &gpus[b]), 0);
}

static enum placement_answer choose(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    return fast_idle_choose(query, less_active, NULL, ret_gpus, ret_verdicts);
}

const struct policy policy_lug = {
    .name = "lug",
    .help = "least utilised GPU, by SMACT, among those that meet the conditions",
    .choose = choose,
    .reserve = backfill_reserve,
};
