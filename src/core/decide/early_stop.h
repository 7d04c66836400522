/* SPDX-License-Identifier: Apache-2.0 */
/* Stops a task that is losing by the stop rule of its array (core/halving.h). */
#ifndef COLLOC_CORE_DECIDE_EARLY_STOP_H
#define COLLOC_CORE_DECIDE_EARLY_STOP_H

#include "core/state/state.h"

/* Decides STOP for a task whose last report is losing, unless it is being ended. Returns 0 or
 * -ENOMEM. */
int core_stop_if_losing(struct core *core, const struct task *task, int64_t now_us);

#endif
