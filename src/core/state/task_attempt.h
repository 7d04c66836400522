/* SPDX-License-Identifier: Apache-2.0 */
/* What an attempt of a task holds until it ends: CPUs, main memory, a waiting allocation. */
#ifndef COLLOC_CORE_STATE_TASK_ATTEMPT_H
#define COLLOC_CORE_STATE_TASK_ATTEMPT_H

#include "core/state/state.h"

/* The task gets its CPUs and main memory, or gives them back. */
void core_take_host(struct core *core, const struct task *task);

void core_return_host(struct core *core, const struct task *task);

/* It computes again, or its attempt has ended: adds up how long it was stopped. */
void core_end_stop(struct task *task, int64_t now_us);

/* It moves no more. */
void core_forget_destination(struct task *task);

/* Its allocation waits no more. Returns 0; CORE_NOT_NOW if none waited. */
int core_end_memory_wait(struct core *core, struct task *task, int64_t now_us);

/* A new attempt: what held of the last one only is forgotten. */
void core_begin_attempt(struct task *task);

/* The attempt ended at `ended_us`: a stop ends then at the latest. */
void core_end_attempt(struct core *core, struct task *task, int64_t ended_us);

/* The task is to end. It becomes ENDING, unless it is suspended or about to change its state:
 * then it stays, and does not wait in a queue. */
void core_begin_ending(struct task *task, int64_t now_us);

#endif
