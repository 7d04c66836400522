/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Best fit: of the GPUs that meet the conditions the one with the least free memory, so that one is
 * filled before the next. With exact memory it is the thesis's OBF (6.3.3).
 */
#include <stddef.h>

#include "policy/backfill.h"
#include "policy/conditions.h"
#include "policy/policies.h"

static bool less_free(const struct placement_query *query, int a, int b)
{
    const struct gpu_view *gpus = query->view->gpus;
    return reading_assume(conditions_left_bytes(query, &gpus[a]), 0) <
           reading_assume(conditions_left_bytes(query, &gpus[b]), 0);
}

static enum placement_answer choose(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    return conditions_choose(query, less_free, NULL, ret_gpus, ret_verdicts);
}

const struct policy policy_best_fit = {
    .name = "best-fit",
    .help = "least available GPU memory among the GPUs that meet the conditions",
    .choose = choose,
    .reserve = backfill_reserve,
};
