#include "estimator/gpu_traits.h"

#include <stddef.h>
#include <string.h>

#include "base/units.h"

/*
 * Contexts: of an A100, what CARMA reports for a MobileNetV3-S of 2.5 million parameters on images of 32 pixels (590
 * MiB) less what the allocator takes for it. cuBLAS workspaces: 4 MiB x 2 + 16 KiB x 8 before Hopper, 32 MiB from it on
 * (c10/cuda and the cuBLAS manual). Rates: NVIDIA's data sheets, dense.
 */
static const struct gpu_traits kinds[] = {
    {"H200", 520 * MIB, 32 * MIB, 132, 494e12, 989e12, 4.8e12},
    {"H100", 520 * MIB, 32 * MIB, 132, 494e12, 989e12, 3.35e12},
    {"A100", 520 * MIB, 8519680, 108, 156e12, 312e12, 1.56e12},
    {"V100", 520 * MIB, 8519680, 80, 15.7e12, 125e12, 0.9e12},
    {"", 520 * MIB, 8519680, 108, 156e12, 312e12, 1.56e12},
};

const struct gpu_traits *gpu_traits_find(const char *kind)
{
    const struct gpu_traits *traits = kinds;
    while (*traits->match && !(kind && strstr(kind, traits->match)))
        traits++;
    return traits;
}
