/* SPDX-License-Identifier: Apache-2.0 */
/* Decides that a task is placed, or reports why it waits. */
#ifndef COLLOC_CORE_DECIDE_PLACE_H
#define COLLOC_CORE_DECIDE_PLACE_H

#include "core/state/state.h"

/* Places the task on as many GPUs as it requests. Returns 0 or -ENOMEM. */
int core_place_task(struct core *core, struct task *task, const int *gpus, int64_t now_us);

/* Leaves an EFFECT_WAIT when the reasons have changed; their figures change all the time. */
int core_report_wait(struct core *core, struct reported_wait *reported, const struct task *task,
    const struct verdict *verdicts);

#endif
