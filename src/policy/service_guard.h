/* SPDX-License-Identifier: Apache-2.0 */
/* Whether services on a GPU admit a task beside them. */
#ifndef COLLOC_POLICY_SERVICE_GUARD_H
#define COLLOC_POLICY_SERVICE_GUARD_H

#include "core/policy.h"

/* Tests whether each service on the GPU admits the query's task. If not, sets the verdict:
 * VERDICT_SERVICE or VERDICT_SERVICE_SLOWED. */
bool service_guard_ask_all(
    const struct placement_query *query, int gpu, struct verdict *ret_verdict);

/* The same. Most servers run no service: then it costs one test. */
static inline bool service_guard_admits(
    const struct placement_query *query, int gpu, struct verdict *ret_verdict)
{
    return !query->view->has_services || service_guard_ask_all(query, gpu, ret_verdict);
}

#endif
