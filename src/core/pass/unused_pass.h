/* SPDX-License-Identifier: Apache-2.0 */
/* The stage in which tasks that do not use their GPUs give their memory to tasks that wait. */
#ifndef COLLOC_CORE_PASS_UNUSED_PASS_H
#define COLLOC_CORE_PASS_UNUSED_PASS_H

#include "core/state/state.h"

/* Suspends tasks that have long not used their GPUs, if the first task that waits can then start or
 * be resumed. Returns 0 or -ENOMEM. */
int core_reclaim_unused(struct core *core, int64_t now_us);

#endif
