/* SPDX-License-Identifier: Apache-2.0 */
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
 * The lists as they were told last, for who looks all day: the three are most of what a look costs
 * on an H200 (0.4 of 0.6 ms of processor time), and hardly anybody comes, goes or takes memory
 * while the memory in use stays the same to the byte. Owns its items; start with {0}, end with
 * processes_told_fini.
 */
struct processes_told {
    struct gpu_process *item;
    size_t count, capacity;
    bool valid;
    bool at_rest; /* memory in use was the same at the look before: who was just ending has left the
                     lists */
    double used_bytes; /* in use on the GPU when they were told */
    int64_t ask_again_us;
};

void processes_told_fini(struct processes_told *told);

/* What the processes of the sample are now known to have used of their time. */
void processes_told_note(struct processes_told *told, const struct gpu_sample *sample);

/*
 * Fills sample->processes, whose memory in use is there already: if `may_repeat`, with what was
 * told last when that was less than a second ago and nothing has moved since. They are valid when
 * the compute list could be had and the other two either could or do not exist on this GPU. Returns
 * NVML's result of the list that failed, NVML_OK, or NVML_UNKNOWN without memory.
 */
int processes_look(const struct nvml *nvml, nvml_device device, struct process_room *room,
    bool may_repeat, struct processes_told *told, struct gpu_sample *sample);

#endif
