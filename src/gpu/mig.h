/* SPDX-License-Identifier: Apache-2.0 */
/* Manual MIG changes: which instances a card has and can have; creating and destroying them.
 * Changes need root. */
#ifndef COLLOC_GPU_MIG_H
#define COLLOC_GPU_MIG_H

#include "gpu/gpu.h"
#include "gpu/mig_plan.h"

struct mig_gpu {
    struct gpu_set *set;
    size_t gpu; /* the card, in the set */
    struct mig_profile profiles[MIG_PROFILES_MAX];
    size_t n_profiles;
    struct mig_plan present; /* the instances that exist */
};

/*
 * Queries the profiles and instances of a card.
 *
 * index: the card's, "0"
 *
 * Returns 0, or a fault: -ENODEV (no such GPU), -ENOTSUP (MIG is off, or unknown to the GPU or
 * driver), -EIO.
 */
int mig_query(struct gpu_set *set, const char *index, struct fault *fault, struct mig_gpu *ret_gpu);

/* Returns 0, or -EBUSY with a fault when a process uses the card or one of its instances, or the
 * driver does not report the processes. */
int mig_check_idle(const struct mig_gpu *gpu, struct fault *fault);

/* Destroys every instance, then creates those of the plan (NULL: none). Returns 0, or -errno with a
 * fault that says how far it got. */
int mig_apply(const struct mig_gpu *gpu, const struct mig_plan *plan, struct fault *fault);

#endif
