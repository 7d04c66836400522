/* SPDX-License-Identifier: Apache-2.0 */
/* The conventional baseline (thesis 6.2.2, "Exclusive"): each task gets idle GPUs to itself for its
 * whole life. */
#include <stddef.h>

#include "policy/backfill.h"
#include "policy/fast_idle.h"
#include "policy/policies.h"

static enum placement_answer choose(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    return fast_idle_choose(query, NULL, NULL, ret_gpus, ret_verdicts);
}

const struct policy policy_exclusive = {
    .name = "exclusive",
    .help = "idle GPUs only, each for one task at a time",
    .exclusive_gpus = true,
    .choose = choose,
    .reserve = backfill_reserve,
};
