#include "policy/activity.h"

double activity_of(const struct gpu_view *gpu)
{
    if (gpu_view_is_idle(gpu))
        return 0;
    return reading_or(gpu->smact_level, reading_or(gpu->utilisation_level, 2));
}
