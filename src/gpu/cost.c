/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cost.h"

#include <time.h>

#include "base/clock.h"

#define SHARE 1e-4

int64_t cost_processor_us(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * SECOND_US + used.tv_nsec / 1000;
}

int64_t cost_rest_us(int64_t cost_us, int64_t least_us)
{
    int64_t rest_us = (int64_t)((double)cost_us / SHARE);
    return rest_us > least_us ? rest_us : least_us;
}
