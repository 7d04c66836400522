/* SPDX-License-Identifier: Apache-2.0 */
/* The latencies of the last requests, and their quantiles. */
#ifndef COLLOC_BASE_LATENCY_WINDOW_H
#define COLLOC_BASE_LATENCY_WINDOW_H

#include <stdint.h>

#include "base/reading.h"

enum { LATENCY_WINDOW_MAX = 1024 }; /* chosen: 100 requests a second for 10 s */

/* The newest replaces the oldest. All zero, it is empty; owns nothing. */
struct latency_window {
    struct latency {
        int64_t at_us, took_us;
    } ring[LATENCY_WINDOW_MAX];
    unsigned count; /* of all that were ever added */
};

/* Notes that a request that ended at `at_us` took so long, in microseconds. */
void latency_window_add(struct latency_window *window, int64_t at_us, int64_t took_us);

/*
 * Finds the latency that the fraction `q` (0 to 1) of the requests did not exceed, among those that
 * ended since `since_us`.
 *
 * Returns it in microseconds; not valid with fewer than `least` requests.
 */
struct reading latency_window_quantile(
    const struct latency_window *window, double q, int64_t since_us, int least);

#endif
