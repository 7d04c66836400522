/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sum of what was added in the last 24 hours, in a few bytes whatever the number of additions:
 * one sum for each hour. So what was added counts for 23 to 24 hours.
 *
 * Example: 5 added at 10:30, 7 at 11:10. The sum is 12 until 09:59 of the next day, then 7, and 0
 * from 11:00 on.
 */
#ifndef COLLOC_BASE_DAY_SUM_H
#define COLLOC_BASE_DAY_SUM_H

#include <stdint.h>

enum { DAY_SUM_HOURS = 24 };

/* Start with {0}. */
struct day_sum {
    int64_t hour; /* the newest that was added to, since the clock's zero */
    int64_t sums[DAY_SUM_HOURS];
};

/* Adds a value. now_us: the time by any clock that does not run backwards, from 0 on. */
void day_sum_add(struct day_sum *sum, int64_t now_us, int64_t amount);

/* Returns the sum of the last 24 hours. */
int64_t day_sum_get(const struct day_sum *sum, int64_t now_us);

#endif
