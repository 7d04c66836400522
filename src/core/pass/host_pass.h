/* SPDX-License-Identifier: Apache-2.0 */
/* Starting tasks that need no GPU. */
#ifndef COLLOC_CORE_PASS_HOST_PASS_H
#define COLLOC_CORE_PASS_HOST_PASS_H

#include "core/state/state.h"

/* Places them as long as CPUs and main memory suffice. Returns 0 or -ENOMEM. */
int core_schedule_host(struct core *core, int64_t now_us);

#endif
