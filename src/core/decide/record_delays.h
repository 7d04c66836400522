/* SPDX-License-Identifier: Apache-2.0 */
/* Writes into the log what was learned of how tasks delay each other. */
#ifndef COLLOC_CORE_DECIDE_RECORD_DELAYS_H
#define COLLOC_CORE_DECIDE_RECORD_DELAYS_H

#include <stdint.h>

struct core;
struct task;

/* Decides EVENT_DELAYS for the user of a task that was just observed, once a period is over.
 * Returns 0 or -ENOMEM. */
int core_record_delays(struct core *core, const struct task *task, int64_t now_us);

#endif
