/* SPDX-License-Identifier: Apache-2.0 */
/* The stage of recovering tasks. */
#ifndef COLLOC_CORE_PASS_RECOVERY_H
#define COLLOC_CORE_PASS_RECOVERY_H

#include "core/state/state.h"

/* Places recovering tasks, and drains GPUs for the first one. Returns 0 or -ENOMEM. */
int core_schedule_recovery(struct core *core, int64_t now_us);

#endif
