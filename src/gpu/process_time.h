/* SPDX-License-Identifier: Apache-2.0 */
/* The part of recent time in which each process had kernels on a GPU: divides the activity among
 * time-sliced processes. */
#ifndef COLLOC_GPU_PROCESS_TIME_H
#define COLLOC_GPU_PROCESS_TIME_H

#include "gpu/gpu.h"
#include "gpu/nvml.h"

/* Memory for NVML's answer; only grows. Start with {0}. */
struct process_time_buffer {
    struct nvml_process_utilization *item;
    unsigned capacity;
};

/* Releases the driver's list. */
void process_time_buffer_fini(struct process_time_buffer *buffer);

/* Start with {0}. */
struct process_time {
    unsigned long long newest_us; /* the driver's time of its newest sample */
    int64_t next_query_us;
};

/*
 * Fills sm_utilisation of sample->processes with means over the second up to the driver's newest
 * sample. Queries nothing when fewer than two processes compute, or when there are MPS clients,
 * which the driver does not distinguish.
 *
 * share:  of a processor that queries may cost; in between the last values stay. 0: no limit
 * sample: its list of processes is filled in already
 *
 * Returns NVML's result.
 */
int process_time_query(const struct nvml *nvml, nvml_device device,
    struct process_time_buffer *buffer, double share, struct process_time *time,
    struct gpu_sample *sample);

#endif
