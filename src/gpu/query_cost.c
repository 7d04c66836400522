/* SPDX-License-Identifier: Apache-2.0 */
/* Processor time of driver queries, and the pause after each: see query_cost.h. */
#include "gpu/query_cost.h"

#include <time.h>

#include "base/clock.h"

/* Of a processor, for each kind of query. Chosen: 64 GPUs with four such queries stay below 3 %. */
#define QUERY_SHARE 1e-4

int64_t query_cost_cpu_us(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * SECOND_US + used.tv_nsec / 1000;
}

int64_t query_cost_pause_us(int64_t cost_us, int64_t least_us)
{
    int64_t rest_us = (int64_t)((double)cost_us / QUERY_SHARE);
    return rest_us > least_us ? rest_us : least_us;
}
