/* SPDX-License-Identifier: Apache-2.0 */
/* The stage of allocations that wait. */
#ifndef COLLOC_CORE_PASS_MEMORY_ANSWER_H
#define COLLOC_CORE_PASS_MEMORY_ANSWER_H

#include "core/state/state.h"

/* Answers the allocations that wait, or lets a task give way to them. Returns 0 or -ENOMEM. */
int core_settle_memory_waits(struct core *core, int64_t now_us);

#endif
