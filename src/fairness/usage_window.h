/* SPDX-License-Identifier: Apache-2.0 */
/* A user's charges within the last days, exact to 1/32 of that time. */
#ifndef COLLOC_FAIRNESS_USAGE_WINDOW_H
#define COLLOC_FAIRNESS_USAGE_WINDOW_H

#include <stdint.h>

/* Chosen: the edge is exact to 5.25 hours in a week, and a log's line stays short. */
enum { USAGE_BUCKETS = 32 };

/* All zero: an empty window of no length. */
struct usage_window {
    int64_t length_us;                /* 0: nothing is counted */
    int64_t at_us;                    /* the window ends here */
    double charged_us[USAGE_BUCKETS]; /* whole microseconds of GPU time, the newest bucket first */
};

/*
 * The window at another time and of another length: older charges are dropped.
 *
 * length_us: 0: the answer is empty
 * now_us:    a charge of a later time, from before the clock was set back, counts as one of now
 */
struct usage_window usage_window_at(
    const struct usage_window *window, int64_t length_us, int64_t now_us);

/* Adds a charge to the newest bucket; below one microsecond: nothing. */
void usage_window_charge(struct usage_window *window, double charge_us);

/* Adds the charges of another window, of the same time and length. */
void usage_window_add(struct usage_window *window, const struct usage_window *other);

/* Returns all charges of the window together. */
double usage_window_sum(const struct usage_window *window);

/* Returns when less than the limit (above 0) is left of the charges, if none is added: the window's
 * own time if that is so already. */
int64_t usage_window_falls_below(const struct usage_window *window, double limit_us);

#endif
