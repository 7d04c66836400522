/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of the last while, in a ring, and their mean. A sample that is not valid is
 * remembered as such. */
#ifndef COLLOC_CORE_WINDOW_H
#define COLLOC_CORE_WINDOW_H

#include <stdint.h>

#include "base/reading.h"

struct window {
    struct window_entry {
        int64_t time_us;
        double value; /* NaN: not valid */
    } * ring;
    double *sorted; /* room for `size` values */
    int size, first, count;
    int64_t length_us;
};

void window_fini(struct window *window);

/* Forgets entries older than `length_us` before `time_us`, then adds one. 0 or -ENOMEM. */
int window_add(struct window *window, int64_t time_us, int64_t length_us, struct reading value);

/* How the entries of a window become one figure. */
enum window_statistic {
    WINDOW_MEAN,
    WINDOW_P95,  /* the least value that no more than 5 % of them exceed */
    WINDOW_EWMA, /* a mean in which an entry counts half as much for each sixth of the window that
                    it is old */
    WINDOW_STATISTICS
};

/* "mean", "p95", "ewma". And back: -EINVAL. */
const char *window_statistic_name(enum window_statistic how);
int window_statistic_parse(const char *name, enum window_statistic *ret_how);

/*
 * The figure of the valid entries since `since_us` when there are at least `enough` of them,
 * otherwise of all valid entries in the window. Not valid when there is none, or when the newest
 * entry is not valid: a sensor that has stopped answering says nothing of now.
 */
struct reading window_level(
    const struct window *window, enum window_statistic how, int64_t since_us, int enough);

/* By how much the values change in a second: the line of least squares. Not valid with fewer than
 * two times. */
struct reading window_slope_per_s(const struct window *window);

/* The mean of the valid entries since `since_us`: not valid when there are fewer than `enough`. */
struct reading window_mean_since(const struct window *window, int64_t since_us, int enough);

#endif
