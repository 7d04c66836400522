/* SPDX-License-Identifier: Apache-2.0 */
/* When does the core need a tick? */
#ifndef COLLOC_CORE_ASK_DEADLINE_H
#define COLLOC_CORE_ASK_DEADLINE_H

#include "base/clock.h"
#include "core/state/state.h"

/* Which task may be backfilled depends on how long residents still run, and so on the time. Chosen:
 * a fraction of the shortest tasks, at little cost. */
#define CORE_BACKFILL_PERIOD_US (30 * SECOND_US)

/* When its time limit ends the task; TIME_NEVER: it has none, or does not run. */
int64_t core_expires_us(const struct core *core, uint64_t id);

/* When the next reservation begins or ends; TIME_NEVER: none does. */
int64_t core_advance_deadline_us(const struct core *core, int64_t now_us);

/* When the suspended or paused task has to go on, since it has ranks of NCCL, or may have;
 * TIME_NEVER: it need not. */
int64_t core_recall_us(const struct core *core, const struct task *task);

/* When the time slot of a running task that takes turns is over. */
int64_t core_slot_end_us(const struct core *core, const struct task *task);

#endif
