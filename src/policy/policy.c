/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <stddef.h>
#include <string.h>

static const struct policy *const policies[] = {
    &policy_exclusive,
    &policy_rr,
    &policy_magm,
    &policy_lug,
    &policy_mug,
    &policy_first_fit,
    &policy_best_fit,
    &policy_foresee,
    NULL,
};

const struct policy *const *policy_all(void)
{
    return policies;
}

const struct policy *policy_find(const char *name)
{
    for (int i = 0; policies[i]; i++)
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    return NULL;
}
