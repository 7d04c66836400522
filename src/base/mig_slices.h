/* SPDX-License-Identifier: Apache-2.0 */
/* The slices of MIG: which compute instances there are, and their part of the power limit. */
#ifndef COLLOC_BASE_MIG_SLICES_H
#define COLLOC_BASE_MIG_SLICES_H

#include <stdbool.h>

/* No GPU has more: for the size of arrays. How many a kind has: struct gpu_kind. */
enum { MIG_COMPUTE_SLICES_MAX = 7, MIG_MEMORY_SLICES_MAX = 8 };

/* Tests whether NVML has a profile for compute instances with this number of slices
 * (NVML_COMPUTE_INSTANCE_PROFILE_...): 1 to 4 and 6 to 8. The driver decides whether a GPU instance
 * can have one. */
static inline bool mig_has_compute_size(int slices)
{
    return slices >= 1 && slices <= 8 && slices != 5;
}

/* Returns the part of the GPU's power limit, in watts, that counts as the limit of a compute
 * instance with `slices` of the GPU's `gpu_slices`. The driver limits only the whole GPU. */
static inline double mig_power_limit_w(double gpu_limit_w, double slices, double gpu_slices)
{
    return gpu_limit_w * slices / gpu_slices;
}

#endif
