/* SPDX-License-Identifier: Apache-2.0 */
/* When a task may start beside others that are starting (starting.c). */
#ifndef COLLOC_POLICY_STARTING_H
#define COLLOC_POLICY_STARTING_H

#include "core/memory_domain.h"
#include "core/policy.h"

/* Have all residents of the GPU taken their memory? Mostly: then none is starting, and for the
 * query's task nothing below is to be computed. False where it shares its memory with others. */
static inline bool starting_is_over(const struct placement_query *query, const struct gpu_view *gpu)
{
    bool is_over = !memory_domain_is_shared(gpu);
    for (int i = 0; i < gpu->n_residents && is_over; i++)
        is_over = gpu->residents[i].residence == RESIDENCE_SETTLED &&
                  gpu->residents[i].backfilled_before != query->task->id;
    return is_over;
}

/* The functions below where some are starting. */
bool starting_admits_beside(const struct placement_query *query, const struct gpu_view *gpu,
    bool predicts, struct verdict *ret_verdict);
double starting_sum_promised(const struct placement_query *query, const struct gpu_view *gpu);
double starting_sum_kept(const struct placement_query *query, const struct gpu_view *gpu);
double starting_sum_activity(
    const struct placement_query *query, const struct gpu_view *gpu, double level);

/*
 * Tests whether the residents that are starting let the query's task start beside them.
 *
 * predicts: the policy predicts speeds: a resident of known memory and activity holds no task off,
 *           whatever starting_max is
 *
 * Returns false with VERDICT_HOLD_OFF or VERDICT_STARTING if not.
 */
static inline bool starting_admits(const struct placement_query *query, const struct gpu_view *gpu,
    bool predicts, struct verdict *ret_verdict)
{
    return starting_is_over(query, gpu) ||
           starting_admits_beside(query, gpu, predicts, ret_verdict);
}

/* Returns the memory that residents of known requirement will still take and that is kept for
 * them. */
static inline double starting_promised_bytes(
    const struct placement_query *query, const struct gpu_view *gpu)
{
    return starting_is_over(query, gpu) ? 0 : starting_sum_promised(query, gpu);
}

/* Returns the memory that is kept for residents of unknown requirement until they have settled. */
static inline double starting_kept_bytes(
    const struct placement_query *query, const struct gpu_view *gpu)
{
    bool may_keep = query->conditions->starting_max > 0 && !starting_is_over(query, gpu);
    return may_keep ? starting_sum_kept(query, gpu) : 0;
}

/* Returns the activity that the GPU is expected to have once its starting residents compute;
 * `level` as measured, where none is starting. */
static inline double starting_expected_activity(
    const struct placement_query *query, const struct gpu_view *gpu, double level)
{
    bool is_any = query->conditions->starting_max > 0 && !starting_is_over(query, gpu);
    return is_any ? starting_sum_activity(query, gpu, level) : level;
}

#endif
