/* SPDX-License-Identifier: Apache-2.0 */
/* The activity by which lug and mug order GPUs: SMACT, or utilisation where SMACT is unknown. */
#include "policy/gpu_activity.h"

double gpu_activity(const struct gpu_view *gpu)
{
    if (gpu_view_is_idle(gpu))
        return 0;
    return reading_assume(
        gpu->smact_level, reading_assume(gpu->utilisation_level, GPU_ACTIVITY_UNKNOWN));
}
