/* SPDX-License-Identifier: Apache-2.0 */
/* The placement policies. A new one is a file that exports one struct policy, and one line in
 * policy.c's table. */
#ifndef COLLOC_POLICY_POLICY_H
#define COLLOC_POLICY_POLICY_H

#include "core/policy.h"

/* By name; NULL for no such policy. */
const struct policy *policy_find(const char *name);

/* All policies, ended by NULL, in the order help lists them. */
const struct policy *const *policy_all(void);

extern const struct policy policy_exclusive, policy_rr, policy_magm, policy_lug, policy_mug,
    policy_first_fit, policy_best_fit, policy_foresee;

#endif
