/* SPDX-License-Identifier: Apache-2.0 */
/* Time inside is int64 microseconds. Decisions use a monotonic clock; wall time appears only at the
 * edges. */
#ifndef COLLOC_BASE_CLOCK_H
#define COLLOC_BASE_CLOCK_H

#include <stdint.h>

#define SECOND_US ((int64_t)1000000)
#define MS_US     ((int64_t)1000)

/* Never goes back, counts while the machine sleeps; its zero is of no meaning. */
int64_t clock_monotonic_us(void);

/* Since 1970-01-01 UTC. May jump. */
int64_t clock_wall_us(void);

#endif
