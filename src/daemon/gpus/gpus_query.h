/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the GPUs since the last poll, for other parts. Each answer is for the loop's
 * thread, and what it points to is valid until the next poll is complete.
 */
#ifndef COLLOC_DAEMON_GPUS_GPUS_QUERY_H
#define COLLOC_DAEMON_GPUS_GPUS_QUERY_H

#include <stdio.h>

#include "daemon/gpu_report.h"

struct gpus;
struct resident;

/* Returns how many there are, managed or not. */
size_t gpus_count(const struct gpus *gpus);

/* Returns why there are none; "" where there are. */
const char *gpus_why_none(const struct gpus *gpus);

/* Returns the version of NVIDIA's driver; "" where there are no GPUs. */
const char *gpus_driver_version(const struct gpus *gpus);

/* Reports GPU `i`. Returns false when there are no more. */
bool gpus_report(const struct gpus *gpus, size_t i, struct gpu_report *ret_report);

/* Returns why the GPU of this index in the core's view is lost or removed; NULL: it is not. */
const char *gpus_why_gone(const struct gpus *gpus, int view);

/* Returns whether NVML's index of each GPU is also CUDA's. `by_mps`: for an MPS client. */
bool gpus_cuda_counts_as_nvml(const struct gpus *gpus, bool by_mps);

/*
 * Time for which a resident of GPU `i` has held it while no process used it, up to the last sample,
 * in microseconds; 0: it is in use; unknown without a reading of its activity.
 *
 * ret_is_long: whether that is beyond the setting unused-after
 */
struct reading gpus_idle_us(
    const struct gpus *gpus, size_t i, const struct resident *resident, bool *ret_is_long);

/* Returns what the GPUs have done while there were live tasks, since the start. */
struct gpu_totals gpus_totals(const struct gpus *gpus);

#endif
