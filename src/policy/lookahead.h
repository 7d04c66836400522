/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the order of the queue by simulating several; see the .c file. */
#ifndef COLLOC_POLICY_LOOKAHEAD_H
#define COLLOC_POLICY_LOOKAHEAD_H

#include "core/core.h"

/*
 * Chooses the order in which the tasks of the main queue start.
 *
 * ret_plan: set to the best order; PLAN_NONE if none can be predicted: there are many GPUs or
 *           tasks, several users' queues, or a time or an activity is not known.
 *
 * Returns 0 or -ENOMEM.
 */
int lookahead_plan(const struct core *core, int64_t now_us, struct queue_plan *ret_plan);

#endif
