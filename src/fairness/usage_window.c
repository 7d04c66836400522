/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rolling window in a fixed amount of memory. Time is divided into buckets of 1/32 of the window,
 * counted from time 0, so the buckets of all users begin at the same times and can be added up. A
 * charge counts in the bucket of its time; the window is the bucket of now and the 31 before it. So
 * a charge leaves the window as a whole bucket, after at least 31/32 and at most 32/32 of its
 * length.
 *
 * Example, a window of 32 h: a charge at 10:20 is in the bucket from 10:00 to 11:00, and leaves the
 * window 32 h after 10:00.
 *
 * With another length, each old bucket counts in the new one in which it ended. A longer window
 * does not restore what a shorter one has dropped.
 */
#include "fairness/usage_window.h"

#include <math.h>

/* Below the largest number of an event. Chosen: beyond all GPUs and times. */
#define CHARGE_MAX_US 1e18

static int64_t bucket_us(int64_t length_us)
{
    return length_us > USAGE_BUCKETS ? length_us / USAGE_BUCKETS : 1;
}

static void add_charge(double *charged_us, double charge_us)
{
    *charged_us = fmin(*charged_us + charge_us, CHARGE_MAX_US);
}

/* The last time of a bucket that is in the window. */
static int64_t last_of(const struct usage_window *window, int i)
{
    int64_t step_us = bucket_us(window->length_us);
    int64_t last_us = (window->at_us / step_us - i + 1) * step_us - 1;
    return last_us < window->at_us ? last_us : window->at_us;
}

struct usage_window usage_window_at(
    const struct usage_window *window, int64_t length_us, int64_t now_us)
{
    struct usage_window moved = {.length_us = length_us, .at_us = now_us};
    int64_t step_us = bucket_us(length_us);
    for (int i = 0; i < USAGE_BUCKETS && length_us > 0 && window->length_us > 0; i++) {
        int64_t age = now_us / step_us - last_of(window, i) / step_us;
        if (age < USAGE_BUCKETS)
            add_charge(&moved.charged_us[age > 0 ? age : 0], window->charged_us[i]);
    }
    return moved;
}

void usage_window_charge(struct usage_window *window, double charge_us)
{
    if (window->length_us > 0 && charge_us >= 1)
        add_charge(&window->charged_us[0], floor(charge_us));
}

void usage_window_add(struct usage_window *window, const struct usage_window *other)
{
    for (int i = 0; i < USAGE_BUCKETS; i++)
        add_charge(&window->charged_us[i], other->charged_us[i]);
}

double usage_window_sum(const struct usage_window *window)
{
    double sum_us = 0;
    for (int i = 0; i < USAGE_BUCKETS; i++)
        sum_us += window->charged_us[i];
    return sum_us;
}

/* The buckets that are newer than the one at which the limit is reached may stay. */
int64_t usage_window_falls_below(const struct usage_window *window, double limit_us)
{
    int64_t step_us = bucket_us(window->length_us);
    double sum_us = 0;
    for (int i = 0; i < USAGE_BUCKETS; i++) {
        sum_us += window->charged_us[i];
        if (sum_us >= limit_us)
            return (window->at_us / step_us - i + USAGE_BUCKETS) * step_us;
    }
    return window->at_us;
}
