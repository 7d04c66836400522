/* SPDX-License-Identifier: Apache-2.0 */
/* Which MIG compute instances there are. */
#ifndef COLLOC_BASE_MIG_SLICES_H
#define COLLOC_BASE_MIG_SLICES_H

#include <stdbool.h>

/* Are there compute instances of so many slices? By NVML_COMPUTE_INSTANCE_PROFILE_...: of 1 to 4
 * and of 6 to 8. Not each GPU instance can have each of them: the driver decides. */
static inline bool mig_has_compute_size(int slices)
{
    return slices >= 1 && slices <= 8 && slices != 5;
}

#endif
