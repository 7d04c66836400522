/* SPDX-License-Identifier: Apache-2.0 */
/* What part of recent time each process had kernels on a GPU: what tells those who take turns on it
 * apart. */
#ifndef COLLOC_GPU_PROCESS_TIME_H
#define COLLOC_GPU_PROCESS_TIME_H

#include "gpu/gpu.h"
#include "gpu/nvml.h"

/* NVML's samples of one call; only grows. Start with {0}. */
struct process_time_room {
    struct nvml_process_utilization *item;
    unsigned capacity;
};

void process_time_room_fini(struct process_time_room *room);

/* Start with {0}. */
struct process_time {
    unsigned long long newest_us; /* the driver's time of its newest sample */
    int64_t ask_again_us;
};

/*
 * Fills sm_utilisation of sample->processes, whose list is there already, with means over the
 * second up to the driver's newest sample. Asks nothing when there is nobody to be told apart, or
 * MPS is at work, where the driver knows no better. With a `share` of a processor, 0 for none, it
 * asks the seldomer the dearer that is; what was known before stays in between. Returns NVML's
 * result.
 */
int process_time_look(const struct nvml *nvml, nvml_device device, struct process_time_room *room,
    double share, struct process_time *time, struct gpu_sample *sample);

#endif
