/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what follows from inputs about giving way. */
#ifndef COLLOC_CORE_DECIDE_YIELD_REACTIONS_H
#define COLLOC_CORE_DECIDE_YIELD_REACTIONS_H

#include "core/state/state.h"

/* What follows from an input about giving way. Returns 0 or -ENOMEM. */
int core_after_yield(struct core *core, const struct task *task, const struct event *event);

/* Decides the rest of a user's command after a replay. Returns 0 or -ENOMEM. */
int core_decide_yield_leftovers(struct core *core, const struct task *task, int64_t now_us);

#endif
