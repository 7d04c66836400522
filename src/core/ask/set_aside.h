/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs reservations in advance keep from a task. */
#ifndef COLLOC_CORE_ASK_SET_ASIDE_H
#define COLLOC_CORE_ASK_SET_ASIDE_H

#include "core/state/state.h"

/* Is the user one of the reservation? */
bool core_is_advance_member(const struct advance *advance, uint32_t uid);

/* When the task ends if it computes from `since_us` on, a waiting one on the slowest GPU that it
 * may get; TIME_NEVER: not known. */
int64_t core_task_ends_us(const struct core *core, const struct task *task, int64_t since_us);

/*
 * Which GPUs are kept from the task by reservations in advance?
 *
 * closed:     for each GPU what closes it besides, 0: nothing; NULL: none is closed
 * ret_answer: has room; its `set_aside` is set
 */
void core_set_aside(const struct core *core, const struct task *task, const uint64_t *closed,
    int64_t now_us, struct placement *ret_answer);

/* How many GPUs have a task of its users. */
int core_count_held(const struct core *core, const struct advance *advance);

#endif
