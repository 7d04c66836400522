/* SPDX-License-Identifier: Apache-2.0 */
/* Decides the immediate consequences of an input. */
#ifndef COLLOC_CORE_DECIDE_REACTIONS_H
#define COLLOC_CORE_DECIDE_REACTIONS_H

#include "core/state/state.h"

/* Decides what follows from an input at once. Returns 0 or -ENOMEM. */
int core_react_to_input(struct core *core, const struct event *event);

/* Decides what the end of a replayed log cut off. Returns 0 or -ENOMEM. */
int core_decide_leftovers(struct core *core, int64_t now_us);

#endif
