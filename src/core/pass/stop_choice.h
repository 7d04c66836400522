/* SPDX-License-Identifier: Apache-2.0 */
/* Stops running tasks for a waiting one. */
#ifndef COLLOC_CORE_PASS_STOP_CHOICE_H
#define COLLOC_CORE_PASS_STOP_CHOICE_H

#include "core/state/state.h"

/* Which tasks may be stopped for a head. */
struct stop_rule {
    bool (*may_be_stopped)(
        const struct core *core, const struct task *task, const struct task *head, int64_t now_us);

    /* Is `a` stopped rather than `b`? */
    bool (*is_stopped_rather)(
        const struct core *core, const struct task *a, const struct task *b, int64_t now_us);

    enum yield_reason reason; /* YIELD_UNUSED: to stop a task gives the head memory, no SMs */
    bool takes_place;         /* of a task that is as active, whatever the priorities */
};

/* Stops tasks for the head, if it has to wait and that helps. Returns 0 or -ENOMEM. */
int core_stop_tasks_for(
    struct core *core, const struct task *head, const struct stop_rule *rule, int64_t now_us);

#endif
