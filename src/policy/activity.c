/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/activity.h"

double activity_of(const struct gpu_view *gpu)
{
    if (gpu_view_is_idle(gpu))
        return 0;
    return reading_assume(gpu->smact_level, reading_assume(gpu->utilisation_level, 2));
}
