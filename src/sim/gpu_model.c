/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/gpu_model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/*
 * Memory. The driver hands out multiples of 2 MiB, from anywhere: who asks for more than is free
 * crashes, whoever else is there. With the constant linear_memory it does so from a line, first
 * fit, as the thesis has it (section 6.2.3): free memory in pieces can be too little then. On an
 * H200 it never was (docs/measured/memory-pieces.md). A catalogue's memory is what the driver shows
 * of a process: what the framework rounds up (PyTorch's segments of 2 and 20 MiB) is in it.
 *
 * What a task asks for, and when, is src/sharing/memory_steps.h's model.
 */
#define GRAIN_BYTES (2 * MIB)

void gpu_memory_fini(struct gpu_memory *memory)
{
    free(memory->segments);
    *memory = (struct gpu_memory){0};
}

/* The place in the list of the first hole of that size, and where it begins. Where pages come from
 * anywhere, the end.
 */
static int find_hole(const struct gpu_memory *memory, int64_t size, int64_t *ret_at)
{
    int i = 0;
    *ret_at = memory->used_bytes;
    if (!memory->linear)
        return memory->n;
    for (*ret_at = 0; i < memory->n && memory->segments[i].at - *ret_at < size; i++)
        *ret_at = memory->segments[i].at + memory->segments[i].size;
    return i;
}

int gpu_memory_take(struct gpu_memory *memory, uint64_t owner, int64_t bytes)
{
    int64_t at, size = (bytes + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
    int i = find_hole(memory, size, &at);
    if (size > memory->capacity_bytes - at)
        return GPU_MEMORY_FULL;
    if (memory->n == memory->room) {
        int room = memory->room ? memory->room * 2 : MEMORY_STEPS;
        struct segment *segments = realloc(memory->segments, (size_t)room * sizeof *segments);
        if (!segments)
            return -ENOMEM;
        memory->segments = segments;
        memory->room = room;
    }
    memmove(&memory->segments[i + 1], &memory->segments[i],
        (size_t)(memory->n - i) * sizeof *memory->segments);
    memory->segments[i] = (struct segment){at, size, owner};
    memory->n++;
    memory->used_bytes += size;
    return 0;
}

void gpu_memory_release(struct gpu_memory *memory, uint64_t owner)
{
    int kept = 0;
    for (int i = 0; i < memory->n; i++) {
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
    for (int i = 0; i < memory->n; i++)
        sum += memory->segments[i].owner == owner ? memory->segments[i].size : 0;
    return sum;
}

double gpu_memory_due_s(const struct gpu_constants *laws, double solo_s, int i)
{
    return laws->startup_s + memory_step_due_s(fmin(laws->ramp_s, solo_s / 2), i);
}
