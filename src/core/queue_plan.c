/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two waiting tasks by a planned order, which depends on nothing but the tasks. Pure. */
#include "core/queue_plan.h"

#include <math.h>

/* INFINITY: what the order goes by is not known of the task. */
static double key_of(enum plan_order order, const struct task *task)
{
    double time_us = reading_assume(task->request.expect.time_us, INFINITY);
    switch (order) {
    case PLAN_LONGEST:
        return isinf(time_us) ? INFINITY : -time_us;
    case PLAN_OLDEST:
        return (double)task->submitted_us;
    case PLAN_LATEST_START:
        return task->latest_start_us ? (double)task->latest_start_us : INFINITY;
    case PLAN_FEWEST_GPUS:
        return time_us / task->request.gpus;
    default:
        return time_us;
    }
}

bool queue_plan_is_before(const struct queue_plan *plan, const struct task *a, const struct task *b)
{
    double one = key_of(plan->order, a), other = key_of(plan->order, b);
    if (a->id == plan->first || b->id == plan->first)
        return a->id == plan->first;
    return one != other ? one < other : a->id < b->id;
}
