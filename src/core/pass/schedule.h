/* SPDX-License-Identifier: Apache-2.0 */
/* One scheduling pass. */
#ifndef COLLOC_CORE_PASS_SCHEDULE_H
#define COLLOC_CORE_PASS_SCHEDULE_H

#include "core/state/state.h"

/* A stage of a pass. */
struct pass_stage {
    const char *name;
    int (*run)(struct core *core, int64_t now_us); /* returns 0 or -ENOMEM */
    const char *why;                               /* what it does, for people */
};

/* The stages in their order. */
const struct pass_stage *core_pass_stages(int *ret_n);

/* Starts what can start: all stages. Returns 0 or -ENOMEM. */
int core_schedule(struct core *core, int64_t now_us);

#endif
