/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a policy by its name. Old logs and configurations hold former names: they are found. */
#include "policy/policies.h"

#include <string.h>

const struct policy *policy_find(const char *name)
{
    for (int i = 0; policy_table[i]; i++) {
        const struct policy *policy = policy_table[i];
        bool is_former = policy->former_name && strcmp(policy->former_name, name) == 0;
        if (is_former || strcmp(policy->name, name) == 0)
            return policy;
    }
    return NULL;
}

const char *policy_name_at(size_t i)
{
    return policy_table[i] ? policy_table[i]->name : NULL;
}
