/* SPDX-License-Identifier: Apache-2.0 */
/* What measured speeds have taught about the interference model of this host. */
#ifndef COLLOC_CORE_STATE_DELAYS_H
#define COLLOC_CORE_STATE_DELAYS_H

#include "core/state/state.h"

/* Adds the measured slowdown of a task (its time over that alone, such as 1.2) to the delays of its
 * user, if the model can be judged by it. */
void core_observe_delay(struct core *core, const struct task *task, double slowdown);

/* Applies an EVENT_DELAYS. Returns 0 or -ENOMEM. */
int core_apply_delays(struct core *core, const struct event *event);

#endif
