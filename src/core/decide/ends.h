/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what follows from the end of an attempt. */
#ifndef COLLOC_CORE_DECIDE_ENDS_H
#define COLLOC_CORE_DECIDE_ENDS_H

#include "core/state/state.h"

/* Decides the END of the task. Returns 0 or -ENOMEM. */
int core_end_task(struct core *core, uint64_t id, enum task_state state, int64_t now_us);

/* Decides what follows from an EXITED. Returns 0 or -ENOMEM. */
int core_after_exit(struct core *core, const struct task *task, int64_t now_us);

#endif
