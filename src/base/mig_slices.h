/* SPDX-License-Identifier: Apache-2.0 */
/* Which MIG compute instances there are. */
#ifndef COLLOC_BASE_MIG_SLICES_H
#define COLLOC_BASE_MIG_SLICES_H

#include <stdbool.h>

/* Tests whether NVML has a profile for compute instances with this number of slices
 * (NVML_COMPUTE_INSTANCE_PROFILE_...): 1 to 4 and 6 to 8. The driver decides whether a GPU instance
 * can have one. */
static inline bool mig_has_compute_size(int slices)
{
    return slices >= 1 && slices <= 8 && slices != 5;
}

#endif
