/* SPDX-License-Identifier: Apache-2.0 */
/* Decides that a task gives way, moves, continues or is resumed. */
#ifndef COLLOC_CORE_DECIDE_GIVE_WAY_H
#define COLLOC_CORE_DECIDE_GIVE_WAY_H

#include "core/state/state.h"

/* Suspends a running task, or pauses it if that is all that is possible. Returns 0 or -ENOMEM. */
int core_stop_task(struct core *core, const struct task *task, enum yield_reason reason,
    uint64_t to_task, int64_t now_us);

/* Pauses a running task until then at the latest, so that another one is measured alone. Returns 0
 * or -ENOMEM. */
int core_pause_for_probe(struct core *core, const struct task *task, uint64_t promised,
    int64_t until_us, int64_t now_us);

/* Moves a running task to as many other GPUs as it has. `bytes`: its memory on each of them.
 * Returns 0 or -ENOMEM. */
int core_move_task(struct core *core, const struct task *task, const int *gpus,
    struct reading bytes, enum yield_reason reason, uint64_t to_task, int64_t now_us);

/* Has the copy of a suspended task go from its neighbour GPU to the host. Returns 0 or -ENOMEM. */
int core_relocate_copy(struct core *core, const struct task *task, int64_t now_us);

/* Lets a paused task continue. Returns 0 or -ENOMEM. */
int core_continue_task(struct core *core, const struct task *task, int64_t now_us);

/* Leaves EFFECT_KILL, unless the task is being suspended, resumed or moved: its answer leads to
 * that. Returns 0 or -ENOMEM. */
int core_kill_task(struct core *core, const struct task *task);

/* Leaves the effect of the task's state again, after STARTED was repeated. Returns 0 or -ENOMEM. */
int core_repeat_effect(struct core *core, const struct task *task);

/* Resumes a suspended task on as many GPUs as it requested. Returns 0 or -ENOMEM. */
int core_resume_task(struct core *core, const struct task *task, const int *gpus, int64_t now_us);

/* Resumes a suspended task if its policy finds GPUs for it. Returns 0 or -ENOMEM. */
int core_try_resume(struct core *core, const struct task *task, bool passes_reservation,
    int64_t now_us, struct placement *ret_answer);

#endif
