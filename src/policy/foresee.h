/* SPDX-License-Identifier: Apache-2.0 */
/* What foresee asks of a GPU that others are on, for those who look into the future with it. */
#ifndef COLLOC_POLICY_FORESEE_H
#define COLLOC_POLICY_FORESEE_H

#include "policy/predict.h"

/*
 * May the task join those on the GPU, as far as memory and speed are concerned? Task and view are
 * the prediction's; the rest of the query holds.
 */
struct verdict foresee_check_sharing(
    const struct placement_query *query, struct prediction *prediction, int gpu);

#endif
