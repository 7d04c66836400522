/* SPDX-License-Identifier: Apache-2.0 */
/* An oracle (thesis, 6.3.3) is one of the daemon's policies for which the simulator sets every
 * task's memory requirement to the memory that the task will take. */
#include "sim/oracle.h"

#include <stddef.h>
#include <strings.h>

#include "base/array.h"
#include "policy/policies.h"

static const struct {
    const char *name;
    const struct policy *policy;
} oracles[] = {
    {"off", &policy_first_fit},
    {"obf", &policy_best_fit},
    {"owf", &policy_magm},
    {"olug", &policy_lug},
};

const char *sim_policy_name_at(size_t i)
{
    size_t n = 0;
    for (const char *name; (name = policy_name_at(n)); n++)
        if (n == i)
            return name;
    return i - n < ARRAY_SIZE(oracles) ? oracles[i - n].name : NULL;
}

bool sim_policy_find(const char *name, struct sim_policy *ret_policy)
{
    *ret_policy = (struct sim_policy){policy_find(name), false};
    for (size_t i = 0; i < ARRAY_SIZE(oracles); i++)
        if (strcasecmp(oracles[i].name, name) == 0)
            *ret_policy = (struct sim_policy){oracles[i].policy, true};
    return ret_policy->policy;
}
