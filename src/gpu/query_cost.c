/* SPDX-License-Identifier: Apache-2.0 */
/* The pause after a driver query: see query_cost.h. */
#include "gpu/query_cost.h"

/* Of a processor, for each kind of query. Chosen: 64 GPUs with four such queries stay below 3 %. */
#define QUERY_SHARE 1e-4

int64_t query_cost_pause_us(int64_t cost_us, int64_t least_us)
{
    int64_t rest_us = (int64_t)((double)cost_us / QUERY_SHARE);
    return rest_us > least_us ? rest_us : least_us;
}
