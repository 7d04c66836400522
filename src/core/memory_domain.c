/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of a domain form a ring: each has the distance to the next in the view's array, so
 * that a copy of the array has the same rings. A table has the last place so far of each domain, in
 * the slot of its hash or in the next that was free: a cluster has thousands of places, and new MIG
 * instances add some each time.
 */
#include "core/memory_domain.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

static bool is_in_a_domain(const struct gpu_view *gpu)
{
    return gpu->id.memory_domain && gpu->is_listed && !gpu->id.is_gone;
}

/* The slot of the place's domain, or the one for it: an index + 1, or 0 where it is free. At least
 * one is. */
static int *find_slot(
    const struct cluster_view *view, int *slots, size_t n_slots, const struct gpu_identity *id)
{
    uint64_t hash = hash_bytes(HASH_START, &id->memory_domain, sizeof id->memory_domain);
    size_t at = hash_bytes(hash, &id->node, sizeof id->node) % n_slots;
    for (; slots[at]; at = (at + 1) % n_slots) {
        const struct gpu_identity *other = &view->gpus[slots[at] - 1].id;
        if (other->memory_domain == id->memory_domain && other->node == id->node)
            break;
    }
    return &slots[at];
}

/* `before` is the last one so far, NULL: it is the first. It leads back to the first. */
static void add_to_ring(struct gpu_view *before, struct gpu_view *gpu)
{
    if (!before)
        return;
    struct gpu_view *first = memory_domain_next(before);
    before->next_in_domain = (int)(gpu - before);
    gpu->next_in_domain = (int)(first - gpu);
}

int memory_domain_link(struct cluster_view *view)
{
    size_t n_slots = 2 * (size_t)view->n_gpus + 1;
    int *slots = calloc(n_slots, sizeof *slots);
    for (int i = 0; i < view->n_gpus; i++)
        view->gpus[i].next_in_domain = 0;
    if (!slots)
        return -ENOMEM;
    for (int i = 0; i < view->n_gpus; i++) {
        struct gpu_view *gpu = &view->gpus[i];
        if (!is_in_a_domain(gpu))
            continue;
        int *slot = find_slot(view, slots, n_slots, &gpu->id);
        add_to_ring(*slot ? &view->gpus[*slot - 1] : NULL, gpu);
        *slot = i + 1;
    }
    free(slots);
    return 0;
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
