/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of the users that have asked lately, each with the day that its first request began. What
 * is a day old says nothing, and makes place for the next user.
 */
#include "daemon/kernels/asking_budget.h"

#include <stdlib.h>

#include "base/array.h"

void asking_budget_fini(struct asking_budget *budget)
{
    free(budget->days);
    *budget = (struct asking_budget){0};
}

static struct asking_day *find_day(const struct asking_budget *budget, uid_t uid, int64_t now_us)
{
    for (size_t i = 0; i < budget->n; i++)
        if (budget->days[i].uid == uid && now_us - budget->days[i].begun_us < DAY_US)
            return &budget->days[i];
    return NULL;
}

static void drop_old_days(struct asking_budget *budget, int64_t now_us)
{
    size_t kept = 0;
    for (size_t i = 0; i < budget->n; i++)
        if (now_us - budget->days[i].begun_us < DAY_US)
            budget->days[kept++] = budget->days[i];
    budget->n = kept;
}

/* Without memory the request is not counted. */
void asking_budget_note(
    struct asking_budget *budget, uid_t uid, size_t answers, int64_t busy_us, int64_t now_us)
{
    struct asking_day *day = find_day(budget, uid, now_us);
    if (!day) {
        const struct asking_day new = {.uid = uid, .begun_us = now_us};
        drop_old_days(budget, now_us);
        if (ARRAY_APPEND(budget->days, budget->n, budget->capacity, new) < 0)
            return;
        day = &budget->days[budget->n - 1];
    }
    day->answers += answers;
    day->busy_us += busy_us;
}

const char *asking_budget_check(
    const struct asking_budget *budget, uid_t uid, size_t questions, int64_t now_us)
{
    const struct asking_day *day = find_day(budget, uid, now_us);
    size_t before = day ? day->answers : 0;
    if (before + questions > ASKING_ANSWERS_A_DAY)
        return "its user has had 10,000 new questions asked within a day, or has with this network";
    if (day && day->busy_us >= ASKING_TIME_A_DAY_US)
        return "its user's networks have kept cuDNN busy for 12 min within a day";
    return NULL;
}
