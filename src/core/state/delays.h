/* SPDX-License-Identifier: Apache-2.0 */
/* What measured speeds have taught about the interference model of this host. */
#ifndef COLLOC_CORE_STATE_DELAYS_H
#define COLLOC_CORE_STATE_DELAYS_H

#include "core/state/state.h"

/* Counts a task that is measured to take so many times as long as alone, where that says something
 * about the model. */
void core_observe_delay(struct core *core, const struct task *task, double slowdown);

/* Applies an EVENT_DELAYS. Returns 0 or -ENOMEM. */
int core_apply_delays(struct core *core, const struct event *event);

#endif
