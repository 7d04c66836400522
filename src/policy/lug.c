/* Least utilised GPU (thesis 6.2.2, "LUG"): of the GPUs that meet the conditions the one with the lowest SMACT. */
#include "policy/activity.h"
#include "policy/conditions.h"
#include "policy/policy.h"

static bool less_active(const struct placement_query *query, int a, int b)
{
    const struct gpu_view *gpus = query->view->gpus;
    return activity_of(&gpus[a]) < activity_of(&gpus[b]);
}

static enum placement_answer choose(const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    return conditions_choose(query, less_active, ret_gpus, ret_verdicts);
}

const struct policy policy_lug = {
    .name = "lug",
    .help = "least utilised GPU, by SMACT, among those that meet the conditions",
    .choose = choose,
};
