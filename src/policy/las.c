/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least attained service (Tiresias, NSDI 2019): with preemption the task that has had least GPU
 * time comes first, so that short tasks end early though their times are not known. Attained
 * service counts in steps, each four times the last: tasks of the same step do not preempt each
 * other, and run first come, first served. GPUs are chosen as by magm. Without preemption it is
 * magm.
 */
#include "base/clock.h"
#include "policy/backfill.h"
#include "policy/policies.h"

#define FIRST_STEP_US (15 * 60 * SECOND_US) /* chosen: most failures and tests are shorter */
#define STEP_FACTOR   4                     /* chosen: a task of a day is preempted five times */

static int64_t rank(const struct task *task, int64_t now_us)
{
    int64_t attained_us = (task->executed_us + task_computed_us(task, now_us)) * task->request.gpus;
    int64_t step_us = FIRST_STEP_US;
    if (attained_us < FIRST_STEP_US)
        return 0;
    while (attained_us / STEP_FACTOR >= step_us)
        step_us *= STEP_FACTOR;
    return step_us;
}

static enum placement_answer choose(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    return policy_magm.choose(query, ret_gpus, ret_verdicts);
}

const struct policy policy_las = {
    .name = "las",
    .help = "as magm; with preemption, the task that has had least GPU time first (Tiresias)",
    .choose = choose,
    .reserve = backfill_reserve,
    .rank = rank,
    .rank_text = "it has had least GPU time",
};
