/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a GPU that tasks share. Pure; formulae and sources are in gpu_model.c. Speed and
 * power are in src/sharing.
 */
#ifndef COLLOC_SIM_GPU_MODEL_H
#define COLLOC_SIM_GPU_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "sharing/gpu_kind.h"
#include "sharing/memory_steps.h"

struct gpu_memory {
    int64_t capacity_bytes, used_bytes;
    bool linear;
    struct segment {
        int64_t at, size;
        uint64_t owner;
    } * segments; /* by address, where it is linear */
    int n, room;
};

void gpu_memory_fini(struct gpu_memory *memory);

/* One more segment for `owner`. 0, GPU_MEMORY_FULL when there is no room for it, or -ENOMEM. */
enum { GPU_MEMORY_FULL = 1 };
int gpu_memory_take(struct gpu_memory *memory, uint64_t owner, int64_t bytes);
void gpu_memory_release(struct gpu_memory *memory, uint64_t owner);
int64_t gpu_memory_of(const struct gpu_memory *memory, uint64_t owner);

/* When step `i` of a task's memory is asked for, in seconds from the start of an attempt that would
 * take `solo_s` alone. */
double gpu_memory_due_s(const struct gpu_constants *laws, double solo_s, int i);

#endif
