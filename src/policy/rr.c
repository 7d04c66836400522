/* SPDX-License-Identifier: Apache-2.0 */
/* Round-robin (dissertation 6.2.2): the next GPU in a fixed circle, among those that meet the
 * conditions.
 */
#include <stddef.h>

#include "policy/backfill.h"
#include "policy/conditions.h"
#include "policy/policies.h"

/* How far round the circle from the GPU of the last placement. */
static int steps_to(const struct cluster_view *view, int gpu)
{
    return (gpu - view->last_placed - 1 + view->n_gpus) % view->n_gpus;
}

static bool is_nearer(const struct placement_query *query, int a, int b)
{
    return steps_to(query->view, a) < steps_to(query->view, b);
}

static enum placement_answer choose(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    return conditions_choose(query, is_nearer, NULL, ret_gpus, ret_verdicts);
}

const struct policy policy_rr = {
    .name = "rr",
    .help = "round-robin: the next GPU in turn that meets the conditions",
    .choose = choose,
    .reserve = backfill_reserve,
};
