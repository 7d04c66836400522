/* Who holds memory on a GPU: NVML's compute, graphics and MPS lists as one, each pid once. */
#ifndef COLLOC_GPU_PROCESSES_H
#define COLLOC_GPU_PROCESSES_H

#include "gpu/gpu.h"
#include "gpu/nvml.h"

/* Room for one of NVML's lists; only grows. Start with {0}, end with process_room_fini. */
struct process_room {
    char *raw;
    unsigned capacity; /* entries of nvml->process_stride bytes */
};

void process_room_fini(struct process_room *room);

/*
 * Fills sample->processes. They are valid when the compute list could be had and the other two either could or do not
 * exist on this GPU. Returns NVML's result of the list that failed, NVML_OK, or NVML_UNKNOWN without memory.
 */
int processes_look(const struct nvml *nvml, nvml_device device, struct process_room *room, struct gpu_sample *sample);

#endif
