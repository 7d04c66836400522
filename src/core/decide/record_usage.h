/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what users have used. */
#ifndef COLLOC_CORE_DECIDE_RECORD_USAGE_H
#define COLLOC_CORE_DECIDE_RECORD_USAGE_H

#include "core/state/state.h"

/* Decides EVENT_USAGE for the users that were charged, once a period is over. Returns 0 or
 * -ENOMEM. */
int core_record_usage(struct core *core, int64_t now_us);

/* The same for one user, at once. */
int core_record_usage_of(struct core *core, uint32_t uid, int64_t now_us);

#endif
