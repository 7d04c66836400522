/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some questions to the driver are dear: 3 ms of processor time on an H200, where most cost
 * microseconds. They are asked so seldom that each takes no more than a ten-thousandth of a
 * processor.
 */
#ifndef COLLOC_GPU_COST_H
#define COLLOC_GPU_COST_H

#include <stdint.h>

/* Between two questions for what changes slowly; a little less than the usual second between two
 * looks. */
#define SLOW_LEAST_US ((int64_t)900000)

/* Processor time of this thread so far. */
int64_t cost_processor_us(void);

/* How long to wait after a question that took `cost_us`. */
int64_t cost_rest_us(int64_t cost_us, int64_t least_us);

#endif
