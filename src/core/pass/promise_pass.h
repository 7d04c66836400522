/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks give way to those that do not have their promised speed. */
#ifndef COLLOC_CORE_PASS_PROMISE_PASS_H
#define COLLOC_CORE_PASS_PROMISE_PASS_H

#include <stdint.h>

struct core;

/* A stage of the scheduling pass (schedule.c). Returns 0 or -ENOMEM. */
int core_schedule_promises(struct core *core, int64_t now_us);

#endif
