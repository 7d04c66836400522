#include "core/view.h"

#include <stddef.h>

#include "base/units.h"

/* An idle GPU has hardly any memory in use: 15 MiB on an A100, a few hundred with an MPS server or a display. */
#define IDLE_MEM_BYTES (1 * GIB)

struct resident *gpu_view_resident(const struct gpu_view *gpu, uint64_t task)
{
    for (int i = 0; i < gpu->n_residents; i++)
        if (gpu->residents[i].task == task)
            return &gpu->residents[i];
    return NULL;
}

const struct resident *gpu_view_unsettled(const struct gpu_view *gpu)
{
    for (int i = gpu->n_residents - 1; i >= 0; i--)
        if (!gpu->residents[i].settled)
            return &gpu->residents[i];
    return NULL;
}

bool gpu_view_is_idle(const struct gpu_view *gpu)
{
    if (gpu->n_residents || !gpu->mem_used_bytes.valid || gpu->mem_used_bytes.value > (double)IDLE_MEM_BYTES)
        return false;
    if (gpu->foreign_processes.valid)
        return gpu->foreign_processes.value == 0;
    return gpu->utilisation_mean.valid && gpu->utilisation_mean.value == 0;
}

struct reading gpu_view_free_bytes(const struct gpu_view *gpu)
{
    if (!gpu->mem_used_bytes.valid)
        return READING_NONE;
    return reading_of((double)gpu->id.mem_total_bytes - gpu->mem_used_bytes.value);
}
