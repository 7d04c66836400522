/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often an expensive driver query may be repeated. Most NVML queries cost microseconds; a few
 * cost 3 ms of processor time on an H200. After such a query the next one waits until the cost is
 * at most a ten-thousandth of a processor: 30 s after a query of 3 ms.
 */
#ifndef COLLOC_GPU_COST_H
#define COLLOC_GPU_COST_H

#include <stdint.h>

/* Microseconds between two queries of a value that changes slowly. Chosen: a little less than the
 * default second between two samples. */
#define SLOW_INTERVAL_US ((int64_t)900000)

/* Returns the pause in microseconds after a query that took `cost_us`: at least `least_us`. */
int64_t query_cost_pause_us(int64_t cost_us, int64_t least_us);

#endif
