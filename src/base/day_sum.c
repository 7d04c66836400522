/* SPDX-License-Identifier: Apache-2.0 */
/* Sums what was added in the last 24 hours. The sum of hour H is at H modulo 24; that of the same
 * hour a day before is emptied first. */
#include "base/day_sum.h"

#include "base/clock.h"

void day_sum_add(struct day_sum *sum, int64_t now_us, int64_t amount)
{
    const int64_t hour = now_us / HOUR_US;
    for (int64_t i = 0; i < DAY_SUM_HOURS && sum->hour < hour; i++)
        sum->sums[++sum->hour % DAY_SUM_HOURS] = 0;
    sum->hour = hour;
    sum->sums[hour % DAY_SUM_HOURS] += amount;
}

int64_t day_sum_get(const struct day_sum *sum, int64_t now_us)
{
    int64_t total = 0;
    for (int64_t hour = now_us / HOUR_US - DAY_SUM_HOURS + 1; hour <= sum->hour; hour++)
        if (hour > sum->hour - DAY_SUM_HOURS && hour >= 0)
            total += sum->sums[hour % DAY_SUM_HOURS];
    return total;
}
