/* SPDX-License-Identifier: Apache-2.0 */
/* What a task waits for that is not a GPU: its turn, a sample, its begin. */
#ifndef COLLOC_CORE_ASK_WAITS_H
#define COLLOC_CORE_ASK_WAITS_H

#include "core/state/state.h"

/* Does the suspended task wait for its next time slot: since its slot was over, or since it takes
 * turns and gave way to an allocation? */
bool core_waits_for_turn(const struct task *task);

/* Does the task that waits for its turn come before the head of the queue, or none? */
bool core_is_turn_of(const struct task *task, const struct task *head);

/* Has a GPU that suits the head not been sampled since its residents changed? Then its free memory
 * is unknown. */
bool core_awaits_sample(const struct core *core, const struct task *head);

#endif
