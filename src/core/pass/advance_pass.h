/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of reservations in advance. */
#ifndef COLLOC_CORE_PASS_ADVANCE_PASS_H
#define COLLOC_CORE_PASS_ADVANCE_PASS_H

#include "core/state/state.h"

/* Places tasks behind the head, which waits, on GPUs that are kept from it: they end before the
 * reservation begins. Returns 0 or -ENOMEM. */
int core_fill_kept(struct core *core, const struct task *head, int64_t now_us);

/* Places tasks of users that have GPUs reserved now, up to as many GPUs. Returns 0 or -ENOMEM. */
int core_schedule_advances(struct core *core, int64_t now_us);

#endif
