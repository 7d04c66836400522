/* SPDX-License-Identifier: Apache-2.0 */
/* The stage of suspended tasks, without preemption. */
#ifndef COLLOC_CORE_PASS_SUSPENDED_PASS_H
#define COLLOC_CORE_PASS_SUSPENDED_PASS_H

#include "core/state/state.h"

/* Resumes what can be resumed. Sets `ret_waits` when a task waits that the GPUs could serve.
 * Returns 0 or -ENOMEM. */
int core_schedule_suspended(struct core *core, int64_t now_us, bool *ret_waits);

#endif
