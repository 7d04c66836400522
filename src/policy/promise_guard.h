/* SPDX-License-Identifier: Apache-2.0 */
/* Whether promises of speed admit a task on a GPU: its own, and those of the tasks there. */
#ifndef COLLOC_POLICY_PROMISE_GUARD_H
#define COLLOC_POLICY_PROMISE_GUARD_H

#include "core/policy.h"

/* Tests the promises. If one is against it, sets the verdict: VERDICT_PROMISE,
 * VERDICT_CROWDED, VERDICT_PROMISE_SLOWED or VERDICT_PROMISE_OWN. */
bool promise_guard_ask_all(
    const struct placement_query *query, int gpu, struct verdict *ret_verdict);

/* The same. Most servers have no promises: then it costs one test. */
static inline bool promise_guard_admits(
    const struct placement_query *query, int gpu, struct verdict *ret_verdict)
{
    return !query->view->has_promises || promise_guard_ask_all(query, gpu, ret_verdict);
}

#endif
