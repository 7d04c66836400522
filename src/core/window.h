/* SPDX-License-Identifier: Apache-2.0 */
/* The monitoring window: the samples of one value over the last `length_us`, and the figures that
 * policies use. A sample that is not valid is an entry, too: the value was unknown then. */
#ifndef COLLOC_CORE_WINDOW_H
#define COLLOC_CORE_WINDOW_H

#include <stdint.h>

#include "base/reading.h"

struct window {
    struct window_entry {
        int64_t time_us;
        double value; /* NaN: not valid */
    } * room;
    double *sorted;         /* scratch: room for `size` values */
    int size, first, count; /* the entries are room[first] and the next `count` - 1 */
    int64_t length_us;
};

/* Frees the entries. A zeroed window is empty and valid. */
void window_fini(struct window *window);

/*
 * Drops entries older than `length_us` before `time_us`, then adds one.
 *
 * time_us: not before the last entry's.
 *
 * Returns 0 or -ENOMEM.
 */
int window_add(struct window *window, int64_t time_us, int64_t length_us, struct reading value);

/* How the entries of a window become one figure. */
enum window_statistic {
    WINDOW_MEAN,
    WINDOW_P95,  /* the least value that no more than 5 % of them exceed */
    WINDOW_EWMA, /* a mean in which an entry counts half as much for each sixth of the window that
                    it is old */
    WINDOW_STATISTICS
};

/* "mean", "p95" and "ewma". */
extern const char *const window_statistic_names[WINDOW_STATISTICS];
const char *window_statistic_name(enum window_statistic how);

/*
 * The figure of the entries since `since_us`.
 *
 * Returns a reading; not valid when fewer than `enough` entries are, or when the newest is not: a
 * sensor that stopped answering says nothing about now.
 */
struct reading window_recent(
    const struct window *window, enum window_statistic how, int64_t since_us, int enough);

/* The same, and of the whole window where too few of these entries are valid. */
struct reading window_level(
    const struct window *window, enum window_statistic how, int64_t since_us, int enough);

/* Returns when the n-th newest entry was added; INT64_MAX: there are fewer. */
int64_t window_newest_us(const struct window *window, int n);

/* Returns the change of the value in a second: the slope of the line of least squares. Not valid
 * with fewer than two different times. */
struct reading window_slope_per_s(const struct window *window);

/* Returns the mean of the valid entries since `since_us`; not valid if fewer than `enough`. */
struct reading window_mean_since(const struct window *window, int64_t since_us, int enough);

#endif
