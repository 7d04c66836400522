/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement policies. A new one is a file that exports one struct policy, and one line in
 * policy_table.c. Help, completion, man pages, the API and the simulator take its name from there.
 */
#ifndef COLLOC_POLICY_POLICIES_H
#define COLLOC_POLICY_POLICIES_H

#include <stddef.h>

#include "core/policy.h"

/* All policies in the order in which help lists them; ended by NULL. */
extern const struct policy *const policy_table[];

/*
 * The policy of a name.
 *
 * name: a policy's name, or the name that it had before (struct policy, `former_name`).
 *
 * Returns the policy, or NULL when there is none of this name.
 */
const struct policy *policy_find(const char *name);

/* The name of policy number `i` (from 0), for lists of choices. Returns NULL behind the last. */
const char *policy_name_at(size_t i);

extern const struct policy policy_exclusive, policy_rr, policy_magm, policy_lug, policy_mug,
    policy_first_fit, policy_best_fit, policy_predictive, policy_las;

#endif
