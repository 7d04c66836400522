/* SPDX-License-Identifier: Apache-2.0 */
/* The stage of tasks that take turns. */
#ifndef COLLOC_CORE_PASS_SLOTS_H
#define COLLOC_CORE_PASS_SLOTS_H

#include "core/state/state.h"

/* Does any task with GPUs, or that waits for a turn, take turns? */
bool core_has_turns(const struct core *core);

/* The main queue and the tasks that wait for their turns. Returns 0 or -ENOMEM. */
int core_schedule_turns(struct core *core, int64_t now_us);

#endif
