/* SPDX-License-Identifier: Apache-2.0 */
/* How MIG instances fit on a GPU, by the placements its driver allows. Pure. */
#ifndef COLLOC_GPU_MIG_PLAN_H
#define COLLOC_GPU_MIG_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

enum { MIG_PROFILES_MAX = 32, MIG_PLACEMENTS_MAX = 16, MIG_INSTANCES_MAX = 16 };

struct mig_placement {
    unsigned start, size; /* in memory slices */
};

struct mig_profile {
    unsigned id;   /* NVML's */
    char name[32]; /* "3g.40gb" */
    int slices;    /* of compute; a GPU has seven */
    int64_t mem_bytes;
    struct mig_placement placements[MIG_PLACEMENTS_MAX];
    size_t n_placements;
};

struct mig_instance {
    size_t profile; /* index into the profiles */
    struct mig_placement at;
};

struct mig_plan {
    struct mig_instance instances[MIG_INSTANCES_MAX];
    size_t count;
};

/*
 * Places for one instance of each of `names` ("3g.40gb", or "3g" or "3" for the smallest profile of
 * so many slices), in the order of their starts. 0, or -EINVAL with words: no such profile (with
 * those that there are), or no room together.
 */
int mig_plan_make(const struct mig_profile *profiles, size_t count, const char *const *names,
    size_t n_names, struct fault *fault, struct mig_plan *ret_plan);

/* In the order of their starts. */
void mig_plan_sort(struct mig_plan *plan);

#endif
