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
 * predictor: made for the query's task and for the view that holds `gpu`. That view may be another
 *            one than query->view: a prediction of it.
 * gpu:       index into the predictor's view.
 *
 * ret_verdict: set to the first condition that is not met, if there is one: VERDICT_ONE_PROCESS,
 *              VERDICT_OTHER_MPS_USER, VERDICT_FULL, VERDICT_HOLD_OFF, VERDICT_MEMORY_UNKNOWN,
 *              VERDICT_MEMORY_SHORT, a verdict on activity (where speeds cannot be predicted),
 *              VERDICT_SLOWDOWN or VERDICT_NO_GAIN.
 *
 * Returns whether the task may join them.
 */
bool admission_check(const struct placement_query *query, struct predictor *predictor, int gpu,
    struct verdict *ret_verdict);

/*
 * Is the predicted effect of a placement acceptable?
 *
 * effect: must be known.
 *
 * ret_verdict: if not, VERDICT_SLOWDOWN (a task would take more than slowdown_max times as long as
 *              alone) or VERDICT_NO_GAIN (all tasks together would gain less than
 *              PREDICT_GAIN_MIN).
 */
bool admission_check_effect(const struct placement_query *query, const struct prediction *effect,
    struct verdict *ret_verdict);

#endif
