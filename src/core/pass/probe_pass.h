/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks pause so that one that was promised a speed is measured alone. */
#ifndef COLLOC_CORE_PASS_PROBE_PASS_H
#define COLLOC_CORE_PASS_PROBE_PASS_H

#include <stdint.h>

struct core;

/* A stage of the scheduling pass (schedule.c). Returns 0 or -ENOMEM. */
int core_schedule_probes(struct core *core, int64_t now_us);

#endif
