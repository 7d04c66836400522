/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the main queue that a policy has chosen by simulating several (struct policy,
 * `plan`; policy/lookahead.c). Of one priority, `first` is the head of the queue; then the tasks
 * come in `order`.
 */
#ifndef COLLOC_CORE_QUEUE_PLAN_H
#define COLLOC_CORE_QUEUE_PLAN_H

#include "core/task.h"

enum plan_order {
    PLAN_NONE, /* nothing is planned */
    PLAN_SHORTEST,
    PLAN_LONGEST,
    PLAN_OLDEST,
    PLAN_LATEST_START, /* the first that has to start to end within its limit (fifo_schedule.c) */
    PLAN_FEWEST_GPUS,  /* the shortest, divided by its number of GPUs */
    PLAN_ORDERS
};

struct queue_plan {
    enum plan_order order;
    uint64_t first; /* a task; 0: none */
};

/* Does `a` come before `b`? Both are of one priority. A task of which the time is not known comes
 * last: a plan is made of tasks of known times, but others are submitted before the next one. */
bool queue_plan_is_before(
    const struct queue_plan *plan, const struct task *a, const struct task *b);

#endif
