/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver hands out multiples of 2 MiB, from anywhere: a task that requests more than is free
 * crashes, whichever other tasks are there. With the constant linear_memory the memory is a line
 * instead, allocated first fit, as in the dissertation (section 6.2.3): free memory in several
 * holes can then be too small. On an H200 it never was (docs/measured/memory-pieces.md).
 *
 *     linear:  |AAAA|BB|....|CCCC|..|     6 free, but a request for 5 fails
 *
 * A catalogue's memory is the driver's value for a process: it includes the framework's rounding
 * (PyTorch's segments of 2 and 20 MiB). src/sharing/memory_steps.h models when a task takes it.
 */
#include "sim/gpu_model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"

/* The driver hands out multiples of it. */
#define GRAIN_BYTES (2 * MIB)

void gpu_memory_fini(struct gpu_memory *memory)
{
    free(memory->segments);
    *memory = (struct gpu_memory){0};
}

/* Returns the index at which a segment in the first hole of that size would stand, and the hole's
 * address. Without linear memory that is the end. */
static size_t find_hole(const struct gpu_memory *memory, int64_t size, int64_t *ret_at)
{
    size_t i = 0;
    *ret_at = memory->used_bytes;
    if (!memory->linear)
        return memory->n;
    for (*ret_at = 0; i < memory->n && memory->segments[i].at - *ret_at < size; i++)
        *ret_at = memory->segments[i].at + memory->segments[i].size;
    return i;
}

int64_t gpu_memory_rounded(int64_t bytes)
{
    return (bytes + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
}

int gpu_memory_take(struct gpu_memory *memory, uint64_t owner, int64_t bytes)
{
    int64_t at, size = gpu_memory_rounded(bytes);
    size_t i = find_hole(memory, size, &at);
    if (size > memory->capacity_bytes - at)
        return GPU_MEMORY_FULL;
    if (ARRAY_RESERVE(memory->segments, memory->capacity, memory->n + 1) < 0)
        return -ENOMEM;
    memmove(
        &memory->segments[i + 1], &memory->segments[i], (memory->n - i) * sizeof *memory->segments);
    memory->segments[i] = (struct segment){at, size, owner};
    memory->n++;
    memory->used_bytes += size;
    return 0;
}

void gpu_memory_release(struct gpu_memory *memory, uint64_t owner)
{
    size_t kept = 0;
    for (size_t i = 0; i < memory->n; i++) {
        if (memory->segments[i].owner == owner)
            memory->used_bytes -= memory->segments[i].size;
        else
            memory->segments[kept++] = memory->segments[i];
    }
    memory->n = kept;
}

int64_t gpu_memory_of(const struct gpu_memory *memory, uint64_t owner)
{
    int64_t sum = 0;
    for (size_t i = 0; i < memory->n; i++)
        sum += memory->segments[i].owner == owner ? memory->segments[i].size : 0;
    return sum;
}

double gpu_memory_due_s(const struct gpu_constants *constants, double solo_s, int step)
{
    return constants->startup_s + memory_step_due_s(fmin(constants->ramp_s, solo_s / 2), step);
}
