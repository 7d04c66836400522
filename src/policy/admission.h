/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admission test of the policy predictive: may a task join the residents of a GPU? The policy
 * tests the GPUs as they are, backfill tests them as they are predicted to be.
 */
#ifndef COLLOC_POLICY_ADMISSION_H
#define COLLOC_POLICY_ADMISSION_H

#include "policy/predict.h"

/*
 * Tests memory and speed for the query's task on a GPU with residents. (Health, size and
 * exclusiveness are conditions_check_place's.)
 *
 * `predictor`: made for the query's task and for the view that holds `gpu`. That view may be
 *              another one than query->view: a prediction of it.
 * `gpu`: index into the predictor's view.
 *
 * Returns VERDICT_FITS, or the first condition that is not met: VERDICT_ONE_PROCESS,
 * VERDICT_OTHER_MPS_USER, VERDICT_FULL, VERDICT_HOLD_OFF, VERDICT_MEMORY_UNKNOWN,
 * VERDICT_MEMORY_SHORT, a verdict on activity (where speeds cannot be predicted), VERDICT_SLOWDOWN
 * or VERDICT_NO_GAIN.
 */
struct verdict admission_check(
    const struct placement_query *query, struct predictor *predictor, int gpu);

/*
 * Is the predicted effect of a placement acceptable?
 *
 * `effect`: must be known.
 *
 * Returns VERDICT_FITS, VERDICT_SLOWDOWN (a task would take more than slowdown_max times as long as
 * alone) or VERDICT_NO_GAIN (all tasks together would gain less than PREDICT_GAIN_MIN).
 */
struct verdict admission_check_effect(
    const struct placement_query *query, const struct prediction *effect);

#endif
