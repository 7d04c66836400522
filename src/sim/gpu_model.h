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
    bool linear; /* memory is a line with holes; else pages from anywhere */
    struct segment {
        int64_t at, size;
        uint64_t owner;
    } * segments; /* in order of address if `linear` */
    size_t n, capacity;
};

/* Releases the list of allocations. */
void gpu_memory_fini(struct gpu_memory *memory);

/* Returns how much memory an allocation of `bytes` takes: the driver allocates whole multiples of
 * 2 MiB. */
int64_t gpu_memory_rounded(int64_t bytes);

/*
 * Allocates a segment for `owner`.
 *
 * Returns 0; GPU_MEMORY_FULL if it does not fit; or -ENOMEM.
 */
enum { GPU_MEMORY_FULL = 1 };
int gpu_memory_take(struct gpu_memory *memory, uint64_t owner, int64_t bytes);

/* Frees all segments of the owner. */
void gpu_memory_release(struct gpu_memory *memory, uint64_t owner);

/* Returns the bytes of the owner. */
int64_t gpu_memory_of(const struct gpu_memory *memory, uint64_t owner);

/*
 * Returns when an attempt takes memory step `step`, in seconds from its start.
 *
 * solo_s: how long the attempt would take alone.
 */
double gpu_memory_due_s(const struct gpu_constants *constants, double solo_s, int step);

#endif
