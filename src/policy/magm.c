/* SPDX-License-Identifier: Apache-2.0 */
/* Most available GPU memory (thesis 6.2.2, "MAGM"): of the GPUs that meet the conditions the one
 * with most free. */
#include "policy/backfill.h"
#include "policy/conditions.h"
#include "policy/fast_idle.h"
#include "policy/policies.h"

static bool more_free(const struct placement_query *query, int a, int b)
{
    const struct gpu_view *gpus = query->view->gpus;
    return reading_assume(conditions_left_bytes(query, &gpus[a]), -1) >
           reading_assume(conditions_left_bytes(query, &gpus[b]), -1);
}

static bool has_most_possible(const struct placement_query *query, int i)
{
    struct reading most = query->view->mem_total_max_bytes;
    return most.valid &&
           reading_assume(conditions_left_bytes(query, &query->view->gpus[i]), -1) >= most.value;
}

static enum placement_answer choose(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    return fast_idle_choose(query, more_free, has_most_possible, ret_gpus, ret_verdicts);
}

const struct policy policy_magm = {
    .name = "magm",
    .help = "most available GPU memory among the GPUs that meet the conditions",
    .choose = choose,
    .reserve = backfill_reserve,
};
