/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of latencies. A quantile is the nearest rank: of 100 latencies, the 99th in order is the
 * p99. Few requests have a p99, too: their longest.
 */
#include "base/latency_window.h"
#include "base/clamp.h"

#include <math.h>
#include <stdlib.h>

void latency_window_add(struct latency_window *window, int64_t at_us, int64_t took_us)
{
    window->ring[window->count++ % LATENCY_WINDOW_MAX] = (struct latency){at_us, took_us};
}

static int compare_latencies(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

struct reading latency_window_quantile(
    const struct latency_window *window, double q, int64_t since_us, int least)
{
    int64_t sorted[LATENCY_WINDOW_MAX];
    int n = 0;
    for (unsigned i = 0; i < window->count && i < LATENCY_WINDOW_MAX; i++)
        if (window->ring[i].at_us >= since_us)
            sorted[n++] = window->ring[i].took_us;
    if (n == 0 || n < least)
        return READING_NONE;
    qsort(sorted, (size_t)n, sizeof *sorted, compare_latencies);
    int rank = clamp_int((int)ceil(q * n), 1, n);
    return reading_of((double)sorted[rank - 1]);
}
