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
 * The other kinds are those of data/gpu-kinds.txt, which the emulator and the simulator have, too.
 * Their contexts are taken to be the A100's.
 *
 * Rates: NVIDIA's data sheets, dense; TF32 counts as fp32 where the GPU has it. NVLink's are half
 * of what they have for both directions; PCIe's are of 16 lanes. The other kinds are taken to be
 * joined by PCIe.
 */
#include "estimator/physics/gpu_traits.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"

/* Bytes of cuBLAS's workspaces per thread: c10/cuda's default of 4096:2:16:8 (KiB) before Hopper,
 * 32 MiB from Hopper on (the cuBLAS manual). */
#define WORKSPACE_AMPERE (2 * 4096 * KIB + 8 * 16 * KIB)
#define WORKSPACE_HOPPER (32 * MIB)

enum { KIND_H200, KIND_H100, KIND_A100, KIND_V100 };

#define CONTEXT_AMPERE 376 * MIB, 128 * MIB, 16 * MIB
#define CONTEXT_HOPPER 614 * MIB, 128 * MIB, 16 * MIB

/*
 * A kind of data/gpu-kinds.txt. fp32 with tensor cores is TF32 from Ampere on, half as fast as 16
 * bit. Without them each SM has 64 lanes before GA102 and on the A30, else 128, with two operations
 * a cycle: an RTX 3090 has 82 x 128 x 2.
 */
#define LANES(capability)            ((capability) < 8.05 ? 64 : 128)
#define SINGLE(sms, capability, mhz) ((sms)*LANES(capability) * 2.0 * (mhz)*1e6)
#define PCIE(generation)             ((generation) <= 3 ? 16e9 : (generation) == 4 ? 32e9 : 64e9)
#define OWN_PRODUCTS(capability)     ((capability) >= 9 && (capability) < 12)
#define DERIVED(name, sms, half, bytes_per_s, capability, mhz, pcie)                               \
    {name, CONTEXT_AMPERE, (capability) < 9 ? WORKSPACE_AMPERE : WORKSPACE_HOPPER, sms, (mhz)*1e6, \
        (capability) < 8 ? SINGLE(sms, capability, mhz) : (half) / 2, half,                        \
        SINGLE(sms, capability, mhz), bytes_per_s, PCIE(pcie), PCIE(pcie), true,                   \
        OWN_PRODUCTS(capability), (capability) == 9.0},

/* clang-format off */
static const struct gpu_traits kinds[] = {
    /* match, context, workspace, SMs, cycles/s,
     * fp32/s, half/s, single/s, bytes/s, NVLink, PCIe, whether the rates are derived,
     * whether products want its own instructions, whether workspaces were fitted to it */
    [KIND_H200] = {"H200", CONTEXT_HOPPER, WORKSPACE_HOPPER, 132, 1980e6,
        494e12, 989e12, 67e12, 4.8e12, 450e9, 64e9, false, true, true},
    [KIND_H100] = {"H100", CONTEXT_HOPPER, WORKSPACE_HOPPER, 132, 1980e6,
        494e12, 989e12, 67e12, 3.35e12, 450e9, 64e9, false, true, true},
    [KIND_A100] = {"A100", CONTEXT_AMPERE, WORKSPACE_AMPERE, 108, 1410e6,
        156e12, 312e12, 19.5e12, 1.56e12, 300e9, 32e9, false, false, false},
    [KIND_V100] = {"V100", CONTEXT_AMPERE, WORKSPACE_AMPERE,  80, 1530e6,
        15.7e12, 125e12, 15.7e12, 0.9e12, 150e9, 16e9, false, false, false},
#include "estimator/physics/gpu_traits_rows.inc"
};
/* clang-format on */

static bool is_separator(char c)
{
    return c == ' ' || c == '-' || c == '_';
}

/* Does the name begin with the kind's, with or without the blanks and hyphens in it? No
 * digit follows: an RTX A1000 is no A100. Returns its length in `name`, or 0. */
static size_t match_at(const char *name, const char *match)
{
    const char *at = name;
    for (; *match; match++) {
        if (is_separator(*match))
            continue;
        while (at > name && is_separator(*at))
            at++;
        if (toupper((unsigned char)*at) != toupper((unsigned char)*match))
            return 0;
        at++;
    }
    return isalnum((unsigned char)*at) ? 0 : (size_t)(at - name);
}

static size_t find_match(const char *name, const char *match)
{
    size_t longest = 0;
    for (const char *at = name; *at; at++) {
        size_t size = at == name || !isdigit((unsigned char)at[-1]) ? match_at(at, match) : 0;
        longest = size > longest ? size : longest;
    }
    return longest;
}

const struct gpu_traits *gpu_traits_find(const char *kind)
{
    const struct gpu_traits *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; kind && i < ARRAY_SIZE(kinds); i++) {
        size_t size = find_match(kind, kinds[i].match);
        if (size > longest) {
            longest = size;
            found = &kinds[i];
        }
    }
    return found;
}

const char *gpu_traits_names(char *buffer, size_t size)
{
    size_t used = 0;
    *buffer = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(kinds) && used < size; i++) {
        if (gpu_traits_find(kinds[i].match) == &kinds[i])
            used += (size_t)snprintf(
                buffer + used, size - used, "%s%s", used ? ", " : "", kinds[i].match);
    }
    return buffer;
}

const struct gpu_traits *gpu_traits_assumed(void)
{
    return &kinds[KIND_A100];
}

double gpu_traits_link(const struct gpu_traits *gpu, const char *name)
{
    return name && strcasestr(name, "PCIe") ? gpu->pcie_bytes_per_s : gpu->link_bytes_per_s;
}

double gpu_traits_context(const struct gpu_traits *gpu, bool multiplies, bool convolves_or_half)
{
    return (double)(gpu->context_bytes + (multiplies ? gpu->blas_bytes : 0) +
                    (convolves_or_half ? gpu->dnn_bytes : 0));
}
