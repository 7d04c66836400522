/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the clocks: CLOCK_BOOTTIME for decisions, CLOCK_REALTIME for what is printed and stored,
 * CLOCK_THREAD_CPUTIME_ID for what work costs. */
#include "base/clock.h"

#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return now.tv_sec * SECOND_US + now.tv_nsec / 1000;
}

int64_t clock_monotonic_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

int64_t clock_thread_us(void)
{
    return read_us(CLOCK_THREAD_CPUTIME_ID);
}
