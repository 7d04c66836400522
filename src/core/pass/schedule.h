/* SPDX-License-Identifier: Apache-2.0 */
/* One scheduling pass. */
#ifndef COLLOC_CORE_PASS_SCHEDULE_H
#define COLLOC_CORE_PASS_SCHEDULE_H

#include "core/state/state.h"

/* Starts what can start: the recovery queue first, then suspended tasks. Returns 0 or -ENOMEM. */
int core_schedule(struct core *core, int64_t now_us);

#endif
