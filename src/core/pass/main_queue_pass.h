/* SPDX-License-Identifier: Apache-2.0 */
/* The stage of the main queue. */
#ifndef COLLOC_CORE_PASS_MAIN_QUEUE_PASS_H
#define COLLOC_CORE_PASS_MAIN_QUEUE_PASS_H

#include "core/state/state.h"

/* Places what can be placed of the main queue. Returns 0 or -ENOMEM. */
int core_schedule_main(struct core *core, int64_t now_us);

#endif
