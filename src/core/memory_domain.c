/* SPDX-License-Identifier: Apache-2.0 */
/* The places of a domain form a ring: each has the distance to the next in the view's array, so
 * that a copy of the array has the same rings. */
#include "core/memory_domain.h"

static bool are_of_one_domain(const struct gpu_view *one, const struct gpu_view *other)
{
    return one->id.memory_domain && one->id.memory_domain == other->id.memory_domain &&
           one->id.node == other->id.node && one->is_listed && other->is_listed &&
           !one->id.is_gone && !other->id.is_gone;
}

void memory_domain_link(struct cluster_view *view)
{
    for (int i = 0; i < view->n_gpus; i++) {
        struct gpu_view *gpu = &view->gpus[i];
        gpu->next_in_domain = 0;
        for (int k = i - 1; k >= 0 && gpu->id.memory_domain; k--) {
            struct gpu_view *before = &view->gpus[k];
            if (!are_of_one_domain(before, gpu))
                continue;
            /* `before` is the last one so far: it leads back to the first. */
            struct gpu_view *first = memory_domain_next(before);
            before->next_in_domain = (int)(gpu - before);
            gpu->next_in_domain = (int)(first - gpu);
            break;
        }
    }
}

bool memory_domain_find_others(const struct gpu_view *gpu)
{
    for (const struct gpu_view *at = memory_domain_next(gpu); at != gpu;
         at = memory_domain_next(at))
        if (at->n_residents > 0)
            return true;
    return false;
}

bool memory_domain_has_external(const struct gpu_view *gpu)
{
    const struct gpu_view *at = gpu;
    do {
        if (at->external_processes.valid && at->external_processes.value > 0)
            return true;
        at = memory_domain_next(at);
    } while (at != gpu);
    return false;
}
