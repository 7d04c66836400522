/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps the whole main queue from starting tasks, whichever GPUs are free. */
#ifndef COLLOC_CORE_ASK_QUEUE_PAUSE_H
#define COLLOC_CORE_ASK_QUEUE_PAUSE_H

#include "core/state/state.h"

/* Returns the recovering task for which the queue stops (setting `recovery`). NULL: there is none.
 */
const struct task *core_queue_stopper(const struct core *core);

/* When the head may start by the setting `decision-delay`; both are in the past without it. */
struct decision_times {
    int64_t idle_us;  /* on idle GPUs */
    int64_t other_us; /* on GPUs in use, too */
};

struct decision_times core_decision_times(const struct core *core, const struct task *head);

/* When the next of these moments is; TIME_NEVER: there is none after the last pass. */
int64_t core_decision_deadline_us(const struct core *core);

#endif
