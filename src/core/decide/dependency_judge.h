/* SPDX-License-Identifier: Apache-2.0 */
/* Decides dependencies on tasks that have ended. */
#ifndef COLLOC_CORE_DECIDE_DEPENDENCY_JUDGE_H
#define COLLOC_CORE_DECIDE_DEPENDENCY_JUDGE_H

#include "core/state/state.h"

/* Judges dependencies on tasks that have ended, and ends the tasks that can never start: as many as
 * a step may. Returns 0 or -ENOMEM. */
int core_judge_dependencies(struct core *core, int64_t now_us);

#endif
