/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks behind the head of the main queue that start before it. */
#ifndef COLLOC_CORE_PASS_BEHIND_HEAD_H
#define COLLOC_CORE_PASS_BEHIND_HEAD_H

#include "core/state/state.h"

/* Places tasks behind the head, where their policies see that it is not delayed. They leave enough
 * CPUs and main memory for it. */
int core_backfill_behind(struct core *core, const struct task *head, int64_t now_us);

#endif
