/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places that share one memory: the MIG compute instances of one GPU instance ("1c.3g.20gb"). They
 * share no SMs. The memory that NVIDIA's driver reports of each is that of all. They are a memory
 * domain; a GPU that shares its memory with none is a domain by itself.
 *
 * What a task still takes on one place is missing on the others. So whatever is decided by memory
 * is decided by the residents of the whole domain: what is free, whether a memory still rises, and
 * whether a place is idle or a task has it to itself. What is decided by SMs is decided by the
 * residents of the place.
 *
 * An example. A GPU instance of 20 GiB has two compute instances. A task that needs 15 GiB has just
 * started on the first: it has taken nothing yet, and 20 GiB are free. A second task that needs
 * 15 GiB must not start on the other: 5 GiB are left for it there.
 */
#ifndef COLLOC_CORE_MEMORY_DOMAIN_H
#define COLLOC_CORE_MEMORY_DOMAIN_H

#include "core/view_data.h"

/*
 * Links the places of each domain: those in the list of the driver that have the same
 * id.memory_domain and node. To be called when the list has changed.
 *
 * Returns 0 or -ENOMEM: then no memory is shared.
 */
int memory_domain_link(struct cluster_view *view);

/* Returns the next place of the domain, and after the last one the first: the GPU itself, where its
 * memory is its own. */
static inline struct gpu_view *memory_domain_next(const struct gpu_view *gpu)
{
    return (struct gpu_view *)gpu + gpu->next_in_domain;
}

/* A walk over the residents of a domain, those of one place after the other. */
struct domain_walk {
    const struct gpu_view *first, *at;
    int n_passed; /* residents of `at` */
};

/* Begins the walk with the residents of the GPU itself. */
static inline struct domain_walk memory_domain_walk(const struct gpu_view *gpu)
{
    return (struct domain_walk){gpu, gpu, 0};
}

/* Returns the next resident; NULL after the last. */
static inline struct resident *memory_domain_resident(struct domain_walk *walk)
{
    while (walk->n_passed == walk->at->n_residents) {
        walk->at = memory_domain_next(walk->at);
        walk->n_passed = 0;
        if (walk->at == walk->first)
            return NULL;
    }
    return &walk->at->residents[walk->n_passed++];
}

/* Does the GPU share its memory with another place? */
static inline bool memory_domain_is_shared(const struct gpu_view *gpu)
{
    return gpu->next_in_domain != 0;
}

/* The function below where the memory is shared. */
bool memory_domain_find_others(const struct gpu_view *gpu);

/* Has another place of the domain residents? Mostly there is none: then nothing is called. */
static inline bool memory_domain_has_others(const struct gpu_view *gpu)
{
    return memory_domain_is_shared(gpu) && memory_domain_find_others(gpu);
}

/* Does a process of no task compute on a place of the domain, as far as NVIDIA's driver lists
 * them? */
bool memory_domain_has_external(const struct gpu_view *gpu);

#endif
