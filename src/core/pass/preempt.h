/* SPDX-License-Identifier: Apache-2.0 */
/* The stage of the main queue and suspended tasks, with preemption. */
#ifndef COLLOC_CORE_PASS_PREEMPT_H
#define COLLOC_CORE_PASS_PREEMPT_H

#include "core/state/state.h"

/* The main queue and the suspended tasks, with preemption. Returns 0 or -ENOMEM. */
int core_schedule_preempting(struct core *core, int64_t now_us);

#endif
