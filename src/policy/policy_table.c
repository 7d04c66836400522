/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which policies there are. The table is alone in its file, so that a program can be linked with
 * another one: tests/unit/extend adds a policy this way.
 */
#include "policy/policies.h"

const struct policy *const policy_table[] = {
    &policy_exclusive,
    &policy_rr,
    &policy_magm,
    &policy_lug,
    &policy_mug,
    &policy_first_fit,
    &policy_best_fit,
    &policy_predictive,
    &policy_las,
    NULL,
};
