/* SPDX-License-Identifier: Apache-2.0 */
/* MIG by hand: what instances a GPU has and could have, making and destroying them. Changes want
 * root. */
#ifndef COLLOC_GPU_MIG_H
#define COLLOC_GPU_MIG_H

#include "gpu/gpu.h"
#include "gpu/mig_plan.h"

struct mig_gpu {
    struct gpu_set *set;
    size_t gpu; /* the card, in the set */
    struct mig_profile profiles[MIG_PROFILES_MAX];
    size_t n_profiles;
    struct mig_plan present; /* the instances that there are */
};

/*
 * Looks at the card `index` ("0") of the set. 0, or a fault in words: -ENODEV (no such GPU),
 * -ENOTSUP (MIG is off, or the GPU or driver does not know it), -EIO.
 */
int mig_look(struct gpu_set *set, const char *index, struct fault *fault, struct mig_gpu *ret_gpu);

/* -EBUSY with words while any process is on the card or one of its instances, or the driver does
 * not tell. Else 0. */
int mig_check_idle(const struct mig_gpu *gpu, struct fault *fault);

/* Destroys every instance, then makes those of the plan (none: NULL). 0 or a fault that says how
 * far it came. */
int mig_apply(const struct mig_gpu *gpu, const struct mig_plan *plan, struct fault *fault);

#endif
