/* SPDX-License-Identifier: Apache-2.0 */
/* Decides latest starts, by the schedule of first come, first served. */
#ifndef COLLOC_CORE_DECIDE_FIFO_SCHEDULE_H
#define COLLOC_CORE_DECIDE_FIFO_SCHEDULE_H

#include "core/state/state.h"

/* Shortens a schedule that is marked, and decides the latest starts of tasks that have arrived, as
 * far as times are known. To be called once in a step: the effects have one schedule. Returns 0 or
 * -ENOMEM. */
int core_update_fifo(struct core *core, int64_t now_us);

#endif
