/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of placement on power and on PCIe traffic, which are off unless they are set. */
#ifndef COLLOC_POLICY_LOAD_LIMITS_H
#define COLLOC_POLICY_LOAD_LIMITS_H

#include "core/policy.h"

/*
 * Do the limits admit the query's task on GPU `i`?
 *
 * server_power_max_w: of all GPUs of its server together, with the task
 * power_max:          of a GPU with tasks, as a part of its power limit, without the task
 * pcie_max_bytes:     traffic of a GPU with tasks, a second, without the task
 *
 * Returns true; or false with VERDICT_SERVER_POWER, VERDICT_POWER_NEVER, VERDICT_POWER_UNKNOWN,
 * VERDICT_POWER_HIGH, VERDICT_PCIE_UNKNOWN or VERDICT_PCIE_HIGH.
 */
bool load_limits_test(const struct placement_query *query, int i, struct verdict *ret_verdict);

/* The same. Most servers have no limit: then it costs a test. */
static inline bool load_limits_admit(
    const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    const struct conditions *conditions = query->conditions;
    bool has_any = conditions->server_power_max_w || conditions->pcie_max_bytes ||
                   conditions->power_max > 0;
    return !has_any || load_limits_test(query, i, ret_verdict);
}

#endif
