/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conditions that a GPU must meet before it may take a task under any policy, and the choice of
 * the best GPUs that meet them. A policy is then little more than an order among GPUs.
 */
#ifndef COLLOC_POLICY_CONDITIONS_H
#define COLLOC_POLICY_CONDITIONS_H

#include "core/policy.h"
#include "policy/memory_conditions.h"
#include "policy/starting.h"

/*
 * All conditions for one GPU: those of the dissertation, section 6.2.2, and three more
 * (conditions.c lists them in order, with an example).
 *
 * Returns VERDICT_FITS, or the first condition that is not met.
 */
struct verdict conditions_check(const struct placement_query *query, int gpu);

/*
 * The following are parts of it, for policies that replace the others. Each returns whether its
 * conditions are met, and sets `ret_verdict` only if not.
 */

/*
 * The conditions on the GPU itself: the task may be placed on it, it is healthy, recently sampled
 * and large enough, and no other task has it exclusively.
 *
 * ret_is_final: true when no more is to be tested: the GPU cannot take the task, or it is idle, or
 *               the task takes only idle ones. False: the conditions on sharing remain.
 */
bool conditions_check_place(
    const struct placement_query *query, int gpu, bool *ret_is_final, struct verdict *ret_verdict);

/* May the task run beside the residents at all? VERDICT_ONE_PROCESS, VERDICT_OTHER_MPS_USER or
 * VERDICT_FULL if not. */
bool conditions_check_coresidents(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict);

/* Is the activity at most conditions->smact_max? VERDICT_SMACT_UNKNOWN, VERDICT_SMACT_HIGH or
 * VERDICT_UTILISATION_HIGH (utilisation replaces an unknown SMACT) if not. */
bool conditions_check_activity(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict);

/* Does its server admit the task? VERDICT_NODE if not. To be tested last: it is the most expensive
 * condition. */
bool conditions_check_node(
    const struct placement_query *query, int gpu, struct verdict *ret_verdict);

/* Is GPU `a` better than `b`? Both fit. A strict order; of equal ones the lower index wins. */
typedef bool conditions_before(const struct placement_query *query, int a, int b);

/* Tests whether no GPU of a higher index can be better: those are not tested then. */
typedef bool conditions_unbeaten(const struct placement_query *query, int gpu);

/*
 * A policy's `choose` (core/policy.h): the best of the GPUs that fit.
 *
 * before:   the order; NULL: by index.
 * unbeaten: may be NULL.
 */
enum placement_answer conditions_choose(const struct placement_query *query,
    conditions_before *before, conditions_unbeaten *unbeaten, int *ret_gpus,
    struct verdict *ret_verdicts);

#endif
