/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/oracle.h"

#include <stddef.h>
#include <strings.h>

#include "policy/policy.h"

static const struct {
    const char *name;
    const struct policy *policy;
} oracles[] = {
    {"off", &policy_first_fit},
    {"obf", &policy_best_fit},
    {"owf", &policy_magm},
    {"olug", &policy_lug},
};

const char *const sim_policy_names[] = {"exclusive", "rr", "magm", "lug", "mug", "first-fit",
    "best-fit", "foresee", "off", "obf", "owf", "olug", NULL};

bool sim_policy_find(const char *name, struct sim_policy *ret_policy)
{
    *ret_policy = (struct sim_policy){policy_find(name), false};
    for (size_t i = 0; i < sizeof oracles / sizeof *oracles; i++)
        if (strcasecmp(oracles[i].name, name) == 0)
            *ret_policy = (struct sim_policy){oracles[i].policy, true};
    return ret_policy->policy;
}
