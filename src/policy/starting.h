/* SPDX-License-Identifier: Apache-2.0 */
/* When a task may start beside others that are starting (starting.c). */
#ifndef COLLOC_POLICY_STARTING_H
#define COLLOC_POLICY_STARTING_H

#include "core/policy.h"

/*
 * Tests whether the residents that are starting let the query's task start beside them.
 *
 * predicts: the policy predicts speeds: a resident of known memory and activity holds no task off,
 *           whatever starting_max is
 *
 * Returns false with VERDICT_HOLD_OFF or VERDICT_STARTING if not.
 */
bool starting_admits(const struct placement_query *query, const struct gpu_view *gpu, bool predicts,
    struct verdict *ret_verdict);

/* Returns the memory that residents of known requirement will still take and that is kept for
 * them. */
double starting_promised_bytes(const struct placement_query *query, const struct gpu_view *gpu);

/* Returns the memory that is kept for residents of unknown requirement until they have settled. */
double starting_kept_bytes(const struct placement_query *query, const struct gpu_view *gpu);

/* Returns the activity that the GPU is expected to have once its starting residents compute;
 * `level` as measured, where none is starting. */
double starting_expected_activity(
    const struct placement_query *query, const struct gpu_view *gpu, double level);

#endif
