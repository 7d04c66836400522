/* SPDX-License-Identifier: Apache-2.0 */
/* When a task has to start, with preemption. */
#ifndef COLLOC_CORE_ASK_LATEST_START_H
#define COLLOC_CORE_ASK_LATEST_START_H

#include "core/state/state.h"

#define CORE_SLOWDOWN_MEAN 1.5 /* chosen on resampled traces: what sharing costs a task, about */

/* Has its latest start come? Then it goes before all tasks of smaller rank. */
bool core_is_urgent(const struct core *core, const struct task *task);

#endif
