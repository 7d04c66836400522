/* SPDX-License-Identifier: Apache-2.0 */
/* Pure: what the core's view says of a GPU decides. */
#include "daemon/kernels/asking_rule.h"

#include <string.h>

#include "core/memory_domain.h"

/* Asking never delays these, so that their users need not know of it. */
static bool has_resident_to_leave_alone(const struct gpu_view *gpu)
{
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk)))
        if (resident->service.is_service || resident->promise.slowdown_max > 0)
            return true;
    return false;
}

/* Returns the memory that no task of the GPU's memory domain has or is known to take; below 0: the
 * tasks take more than is free. Not valid without a sample. */
static struct reading asking_free_bytes(const struct gpu_view *gpu)
{
    struct reading free_bytes = gpu_view_free_bytes(gpu);
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk)))
        free_bytes.value -= resident_outstanding_bytes(resident);
    return free_bytes;
}

bool asking_is_allowed(const struct gpu_view *gpu, const struct conditions *conditions,
    int64_t needed_bytes, int64_t now_us, const char **ret_why)
{
    struct reading free_bytes = asking_free_bytes(gpu);
    if (!gpu->id.is_place || gpu->id.is_gone || gpu->health != VIEW_OK)
        *ret_why = "the GPU is not in use by colloc";
    else if (gpu->id.one_process)
        *ret_why = "the GPU admits one process only";
    else if (claims_any(gpu->claims, CLAIMS_BARRING | CLAIMS_HEAD))
        *ret_why = "the GPU is kept for a task";
    else if (has_resident_to_leave_alone(gpu))
        *ret_why = "a task on the GPU must not be disturbed";
    else if (!free_bytes.valid || now_us - gpu->sampled_us > conditions->sample_valid_us)
        *ret_why = "it is not known how much memory of the GPU is free";
    else if (free_bytes.value < (double)needed_bytes)
        *ret_why = "the GPU has too little free memory";
    else
        return true;
    return false;
}

static bool is_better(const struct gpu_view *gpu, const struct gpu_view *than)
{
    if (gpu->n_residents != than->n_residents)
        return gpu->n_residents < than->n_residents;
    return asking_free_bytes(gpu).value > asking_free_bytes(than).value;
}

int asking_choose(const struct cluster_view *view, const char *kind,
    const struct conditions *conditions, int64_t needed_bytes, int64_t now_us, const char **ret_why)
{
    int best = -1;
    *ret_why = "there is no such GPU";
    for (int i = 0; i < view->n_gpus; i++) {
        const struct gpu_view *gpu = &view->gpus[i];
        if (strcmp(gpu->id.name, kind) == 0 &&
            asking_is_allowed(gpu, conditions, needed_bytes, now_us, ret_why) &&
            (best < 0 || is_better(gpu, &view->gpus[best])))
            best = i;
    }
    return best;
}
