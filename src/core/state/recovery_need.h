/* SPDX-License-Identifier: Apache-2.0 */
/* What a task that ran out of GPU memory requires of its GPUs for the next attempt. */
#ifndef COLLOC_CORE_STATE_RECOVERY_NEED_H
#define COLLOC_CORE_STATE_RECOVERY_NEED_H

#include "core/state/state.h"

struct recovery_need {
    bool is_alone;     /* GPUs on which no other task computes or holds memory */
    double free_bytes; /* free on each GPU, beside others; 0: no requirement */
};

/* Returns the requirement; all zero for a task that has not run out of memory. */
struct recovery_need core_recovery_need(const struct core *core, const struct task *task);

/* Its is_alone. A pass asks it of each task that recovers: mostly nothing else is known. */
static inline bool core_recovers_alone(const struct core *core, const struct task *task)
{
    if (!task->run->reached_bytes.valid && !core->settings.recovery_step_bytes)
        return task->oom_count > 0;
    return core_recovery_need(core, task).is_alone;
}

/* Is the memory in `run->reached_bytes` the requirement of the task's next attempt, which may be
 * beside others? */
bool core_retries_beside_others(const struct core *core, const struct task *task);

/*
 * Notes in `run->reached_bytes` how much of its GPUs was left to a task that runs out of memory.
 * To be called while it is a resident of them.
 */
void core_note_reached(const struct core *core, struct task *task);

#endif
