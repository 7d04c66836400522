/* SPDX-License-Identifier: Apache-2.0 */
/* Applies events to the state. */
#ifndef COLLOC_CORE_STATE_APPLY_H
#define COLLOC_CORE_STATE_APPLY_H

#include "core/state/state.h"

/*
 * Changes the state as the event says; decides nothing.
 *
 * Returns 0, CORE_NO_SUCH_TASK or CORE_NOT_NOW (nothing has changed), or -ENOMEM.
 */
int core_apply_event(struct core *core, const struct event *event);

#endif
