/* SPDX-License-Identifier: Apache-2.0 */
#include "estimator/physics/gpu_traits.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/units.h"

/*
 * Contexts: those of the H200 are measured (data/memory/README.md: 630 MiB where only cuDNN was
 * used, 742 MiB for cuBLAS, 758 MiB for both or in 16 bit; PyTorch 2.11, CUDA 13). The A100's sum
 * is what CARMA reports for a MobileNetV3-S of 2.5 million parameters on images of 32 pixels
 * (590 MiB) less what the allocator takes for it, split in the same proportions.
 *
 * cuBLAS workspaces: 4 MiB x 2 + 16 KiB x 8 before Hopper, 32 MiB from Hopper on (c10/cuda and the
 * cuBLAS manual).
 *
 * Rates: NVIDIA's data sheets, dense.
 */
enum { KIND_H200, KIND_H100, KIND_A100, KIND_V100, KINDS };

static const struct gpu_traits kinds[KINDS] = {
    [KIND_H200] = {"H200", 614 * MIB, 128 * MIB, 16 * MIB, 32 * MIB, 132, 494e12, 989e12, 4.8e12},
    [KIND_H100] = {"H100", 614 * MIB, 128 * MIB, 16 * MIB, 32 * MIB, 132, 494e12, 989e12, 3.35e12},
    [KIND_A100] = {"A100", 376 * MIB, 128 * MIB, 16 * MIB, 8519680, 108, 156e12, 312e12, 1.56e12},
    [KIND_V100] = {"V100", 376 * MIB, 128 * MIB, 16 * MIB, 8519680, 80, 15.7e12, 125e12, 0.9e12},
};

const char *const gpu_traits_kinds[] = {"H200", "H100", "A100", "V100", NULL};

static bool is_kind(const char *name, const char *match)
{
    const char *at = strcasestr(name, match);
    return at && !isdigit((unsigned char)at[strlen(match)]);
}

const struct gpu_traits *gpu_traits_find(const char *kind)
{
    for (size_t i = 0; kind && i < KINDS; i++)
        if (is_kind(kind, kinds[i].match))
            return &kinds[i];
    return NULL;
}

const struct gpu_traits *gpu_traits_assumed(void)
{
    return &kinds[KIND_A100];
}

double gpu_traits_context(const struct gpu_traits *gpu, bool multiplies, bool convolves_or_half)
{
    return (double)(gpu->context_bytes + (multiplies ? gpu->blas_bytes : 0) +
                    (convolves_or_half ? gpu->dnn_bytes : 0));
}
