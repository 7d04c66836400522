/* SPDX-License-Identifier: Apache-2.0 */
/* Of idle GPUs of several kinds the fastest, for policies that order GPUs by something else. */
#ifndef COLLOC_POLICY_FAST_IDLE_H
#define COLLOC_POLICY_FAST_IDLE_H

#include "policy/conditions.h"

/*
 * conditions_choose, whose choice of idle GPUs is replaced by as many of a faster kind, if these
 * are idle and fit, too: of the fastest such kind, and the closest of them. A choice with a GPU
 * that is not idle stays.
 */
enum placement_answer fast_idle_choose(const struct placement_query *query,
    conditions_before *before, conditions_unbeaten *unbeaten, int *ret_gpus,
    struct verdict *ret_verdicts);

#endif
