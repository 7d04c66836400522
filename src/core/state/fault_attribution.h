/* SPDX-License-Identifier: Apache-2.0 */
/* Which task caused a fault. */
#ifndef COLLOC_CORE_STATE_FAULT_ATTRIBUTION_H
#define COLLOC_CORE_STATE_FAULT_ATTRIBUTION_H

#include "core/state/state.h"

/* Decides whether the exited task may be at fault for its end. Call it while the task still holds
 * its GPUs. */
void core_attribute_exit(struct core *core, struct task *task, const struct event *event);

#endif
