/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every policy asks of a GPU before it may take a task, and the picking of the best of those
 * that may: a policy is then an order among GPUs.
 */
#ifndef COLLOC_POLICY_CONDITIONS_H
#define COLLOC_POLICY_CONDITIONS_H

#include "core/policy.h"

/*
 * The conditions of the thesis, section 6.2.2: SMACT at most conditions->smact_max over the window;
 * free memory of at least min_free_bytes when nothing is known of the task, of what it needs and
 * margin_bytes more otherwise. Where SMACT is not reported, utilisation stands in: it is never
 * below SMACT. An idle GPU takes every task that it suits (cluster_view_suits): even one with an
 * estimate beyond its memory, when there is no larger place. Beyond the thesis: a GPU takes nobody
 * while its newest task is still taking its memory; what those are known to need who have not shown
 * up there after that is not free; and a task of SHARING_AUTO joins others only where all together
 * are predicted to gain (predict.h).
 */
struct verdict conditions_check(const struct placement_query *query, int gpu);

/*
 * The first of these conditions, which hold for every policy: what the GPU is, that it is there and
 * seen, that nobody has it to himself. *ret_decided: the answer is final, since it is no place for
 * the task, or since it is idle or has to be.
 */
struct verdict conditions_check_place(
    const struct placement_query *query, int gpu, bool *ret_decided);

/* Whether it may be beside those who are there at all: MPS, compute mode, how many there are. */
struct verdict conditions_check_company(
    const struct placement_query *query, const struct gpu_view *gpu);

/* Activity alone: SMACT, or utilisation in its place, at most conditions->smact_max. */
struct verdict conditions_check_activity(
    const struct placement_query *query, const struct gpu_view *gpu);

/* Should GPU a be taken before b? Both fit. Must be a strict order; the lower index wins where
 * neither goes first. */
typedef bool conditions_before(const struct placement_query *query, int a, int b);

/* Is the GPU one that none with a higher index can be taken before? Then these need no look. */
typedef bool conditions_unbeaten(const struct placement_query *query, int gpu);

/*
 * The policies' choose: the first task->request.gpus of those that fit, in the order of `before`
 * (NULL: by index). `unbeaten` may be NULL.
 */
enum placement_answer conditions_choose(const struct placement_query *query,
    conditions_before *before, conditions_unbeaten *unbeaten, int *ret_gpus,
    struct verdict *ret_verdicts);

#endif
