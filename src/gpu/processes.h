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
 * The lists as they were told last: the three are most of what a look costs on an H200 (0.4 of 0.6 ms of processor
 * time), and nobody comes, goes or takes memory while the memory in use stays the same to the byte. Owns its items;
 * start with {0}, end with process_memory_fini.
 */
struct process_memory {
    struct gpu_process *item;
    size_t count, capacity;
    bool valid;
    double used_bytes; /* in use on the GPU when they were told */
    int64_t ask_again_us;
};

void process_memory_fini(struct process_memory *told);

/* What the processes of the sample are now known to have used of their time. */
void process_memory_note(struct process_memory *told, const struct gpu_sample *sample);

/*
 * Fills sample->processes, whose memory in use is there already: with what was told last when that was less than a
 * second ago and nothing has moved since. They are valid when the compute list could be had and the other two either
 * could or do not exist on this GPU. Returns NVML's result of the list that failed, NVML_OK, or NVML_UNKNOWN without
 * memory.
 */
int processes_look(const struct nvml *nvml, nvml_device device, struct process_room *room, struct process_memory *told,
                   struct gpu_sample *sample);

#endif
