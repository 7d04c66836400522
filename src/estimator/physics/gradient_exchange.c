/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of n processes sums B bytes in 2 (n - 1) / n B / rate: each process sends, and receives,
 * that much (Patarasuk and Yuan, 2009; PERFORMANCE.md of nccl-tests). Buckets are summed one after
 * the other, in the order in which they are ready, which is taken to be evenly over the backward
 * pass. So either the first bucket is waited for and all others follow without a pause, or the
 * backward pass is slower and only the last bucket is left.
 */
#include "estimator/physics/gradient_exchange.h"

#include <math.h>

#include "base/units.h"

#define BUCKET_BYTES (25.0 * MIB) /* bucket_cap_mb of DistributedDataParallel, its default */

/* What NCCL reaches of a link's rate. Chosen between 0.7 and 0.8, which its own tests are known to
 * print on servers of NVLink; not measured by colloc. */
#define REACHED_SHARE 0.75

double gradient_exchange_wait_us(const struct gradient_exchange *exchange)
{
    double n = exchange->processes;
    if (n < 2 || exchange->bytes <= 0 || exchange->bytes_per_s <= 0)
        return 0;
    double buckets = fmax(1, ceil(exchange->bytes / BUCKET_BYTES)),
           all_us = 2 * (n - 1) / n * exchange->bytes / (REACHED_SHARE * exchange->bytes_per_s) *
                    1e6,
           bucket_us = all_us / buckets, first_us = exchange->backward_us / buckets;
    return fmax(bucket_us, first_us + all_us - exchange->backward_us);
}
