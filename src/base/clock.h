/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, in int64 microseconds. Decisions use the monotonic clock; wall time is for output and
 * stored events. */
#ifndef COLLOC_BASE_CLOCK_H
#define COLLOC_BASE_CLOCK_H

#include <stdint.h>

#define MS_US     ((int64_t)1000)
#define SECOND_US ((int64_t)1000000)
#define MINUTE_US (60 * SECOND_US)
#define HOUR_US   (60 * MINUTE_US)
#define DAY_US    (24 * HOUR_US)

/* A time that never comes: later than every other, so that the earliest of several can be found. */
#define TIME_NEVER INT64_MAX

/* Returns time that never goes back and counts on while the machine is suspended; its zero has no
 * meaning. */
int64_t clock_monotonic_us(void);

/* Returns the time since 1970-01-01 UTC. May jump. */
int64_t clock_wall_us(void);

/* Returns the processor time of this thread so far. */
int64_t clock_thread_us(void);

#endif
