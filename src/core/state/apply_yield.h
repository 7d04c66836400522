/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the events by which a task gives way and is resumed. */
#ifndef COLLOC_CORE_STATE_APPLY_YIELD_H
#define COLLOC_CORE_STATE_APPLY_YIELD_H

#include "core/state/state.h"

/* Applies an event about suspending, resuming, moving, pausing or waiting for memory. Returns as
 * core_apply_event; CORE_NOT_NOW for other events. */
int core_apply_yield(struct core *core, struct task *task, const struct event *event);

#endif
