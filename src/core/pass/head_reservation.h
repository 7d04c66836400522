/* SPDX-License-Identifier: Apache-2.0 */
/* Reserves GPUs for the head of the main queue. */
#ifndef COLLOC_CORE_PASS_HEAD_RESERVATION_H
#define COLLOC_CORE_PASS_HEAD_RESERVATION_H

#include "core/state/state.h"

/* Chosen once for a head, since residents only leave the GPUs from then on; and again when the
 * choice does not hold, or after core_release_reservation (policy/backfill.h says when). Returns
 * whether GPUs are reserved. */
bool core_reserve_gpus(struct core *core, const struct task *task, int64_t now_us);

#endif
