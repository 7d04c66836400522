/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which blocked tasks may start. */
#ifndef COLLOC_CORE_DECIDE_ELIGIBILITY_H
#define COLLOC_CORE_DECIDE_ELIGIBILITY_H

#include "core/state/state.h"

/* Lets blocked tasks into their queue that may start now. Returns 0 or -ENOMEM. */
int core_admit_eligible(struct core *core, int64_t now_us);

#endif
