/* SPDX-License-Identifier: Apache-2.0 */
/* First fit: of the GPUs that meet the conditions the first one. With exact memory it is the
 * thesis's OFF (6.3.3). */
#include <stddef.h>

#include "policy/backfill.h"
#include "policy/conditions.h"
#include "policy/policies.h"

static enum placement_answer choose(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    return conditions_choose(query, NULL, NULL, ret_gpus, ret_verdicts);
}

const struct policy policy_first_fit = {
    .name = "first-fit",
    .help = "the first GPU that meets the conditions",
    .choose = choose,
    .reserve = backfill_reserve,
};
