/* What part of recent time each process had kernels on a GPU: what tells those who take turns on it apart. */
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

/*
 * Fills sm_utilisation of sample->processes, whose list is there already, with means over the second up to the driver's
 * newest sample. *newest_us is the driver's time of that, 0 at first. Asks nothing when there is nobody to be told
 * apart, or MPS is at work, where the driver knows no better. Returns NVML's result.
 */
int process_time_look(const struct nvml *nvml, nvml_device device, struct process_time_room *room,
                      unsigned long long *newest_us, struct gpu_sample *sample);

#endif
