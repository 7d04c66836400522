/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constants of each kind of GPU, and how a name of nvidia-smi is matched with a kind: by a part
 * of the name, so that "NVIDIA H200 NVL" is an H200.
 *
 * Contexts: those of the H200 are measured (data/memory/README.md: 630 MiB where only cuDNN was
 * used, 742 MiB for cuBLAS, 758 MiB for both or in 16 bit; PyTorch 2.11, CUDA 13). The A100's sum
 * is what CARMA reports for a MobileNetV3-S of 2.5 million parameters on images of 32 pixels (590
 * MiB) less the allocator's memory, split in the same proportions. The H100 is assumed to be like
 * the H200, the V100 like the A100.
 *
 * Rates: NVIDIA's data sheets, dense; TF32 counts as fp32 where the GPU has it.
 */
#include "estimator/physics/gpu_traits.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/units.h"

/* Bytes of cuBLAS's workspaces per thread: c10/cuda's default of 4096:2:16:8 (KiB) before Hopper,
 * 32 MiB from Hopper on (the cuBLAS manual). */
#define WORKSPACE_AMPERE (2 * 4096 * KIB + 8 * 16 * KIB)
#define WORKSPACE_HOPPER (32 * MIB)

enum { KIND_H200, KIND_H100, KIND_A100, KIND_V100, KINDS };

/* clang-format off */
static const struct gpu_traits kinds[KINDS] = {
    /*             match   context    BLAS       DNN       workspace         SMs  fp32/s   half/s
     * single/s bytes/s */
    [KIND_H200] = {"H200", 614 * MIB, 128 * MIB, 16 * MIB, WORKSPACE_HOPPER, 132, 494e12,  989e12, 67e12, 4.8e12},
    [KIND_H100] = {"H100", 614 * MIB, 128 * MIB, 16 * MIB, WORKSPACE_HOPPER, 132, 494e12,  989e12, 67e12, 3.35e12},
    [KIND_A100] = {"A100", 376 * MIB, 128 * MIB, 16 * MIB, WORKSPACE_AMPERE, 108, 156e12,  312e12, 19.5e12, 1.56e12},
    [KIND_V100] = {"V100", 376 * MIB, 128 * MIB, 16 * MIB, WORKSPACE_AMPERE,  80, 15.7e12, 125e12, 15.7e12, 0.9e12},
};
/* clang-format on */

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
