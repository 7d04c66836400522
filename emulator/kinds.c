/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/kinds.h"

/*
 * Totals are nvidia-smi's; `reserved_mib` is what is missing from them in the capacity PyTorch
 * prints (39.39 GiB on an A100-40GB). Idle power is what an idle card with persistence mode draws.
 */
static const struct kind kinds[] = {
    {
        .name = "A100-40GB",
        .product = "NVIDIA A100-SXM4-40GB",
        .total_mib = 40960,
        .reserved_mib = 624,
        .sm_count = 108,
        .tdp_w = 400,
        .idle_w = 50,
        .awake_w = 85,
        .cuda_major = 8,
        .cuda_minor = 0,
        .architecture = 7,
        .sm_mhz = 1410,
        .memory_mhz = 1215,
        .pcie_generation = 4,
        .pci_device_id = 0x20B010DE,
        .profiles = {{"1g.5gb", 1, 1, 14, 4864}, {"1g.10gb", 1, 2, 14, 9856},
            {"2g.10gb", 2, 2, 28, 9856}, {"3g.20gb", 3, 4, 42, 19968}, {"4g.20gb", 4, 4, 56, 19968},
            {"7g.40gb", 7, 8, 98, 40192}},
    },
    {
        .name = "A100-80GB",
        .product = "NVIDIA A100-SXM4-80GB",
        .total_mib = 81920,
        .reserved_mib = 880,
        .sm_count = 108,
        .tdp_w = 400,
        .idle_w = 55,
        .awake_w = 90,
        .cuda_major = 8,
        .cuda_minor = 0,
        .architecture = 7,
        .sm_mhz = 1410,
        .memory_mhz = 1593,
        .pcie_generation = 4,
        .pci_device_id = 0x20B210DE,
        .profiles = {{"1g.10gb", 1, 1, 14, 9728}, {"1g.20gb", 1, 2, 14, 19968},
            {"2g.20gb", 2, 2, 28, 19968}, {"3g.40gb", 3, 4, 42, 40192},
            {"4g.40gb", 4, 4, 56, 40192}, {"7g.80gb", 7, 8, 98, 80384}},
    },
    {
        .name = "H100-80GB",
        .product = "NVIDIA H100 80GB HBM3",
        .total_mib = 81559,
        .reserved_mib = 560,
        .sm_count = 132,
        .tdp_w = 700,
        .idle_w = 70,
        .awake_w = 115,
        .cuda_major = 9,
        .cuda_minor = 0,
        .architecture = 9,
        .sm_mhz = 1980,
        .memory_mhz = 2619,
        .pcie_generation = 5,
        .pci_device_id = 0x233010DE,
        .profiles = {{"1g.10gb", 1, 1, 16, 9984}, {"1g.20gb", 1, 2, 26, 20096},
            {"2g.20gb", 2, 2, 32, 20096}, {"3g.40gb", 3, 4, 60, 40448},
            {"4g.40gb", 4, 4, 64, 40448}, {"7g.80gb", 7, 8, 132, 80896}},
    },
    {
        .name = "H200",
        .product = "NVIDIA H200",
        .total_mib = 143771,
        .reserved_mib = 700,
        .sm_count = 132,
        .tdp_w = 700,
        .idle_w = 75,
        .awake_w = 120,
        .cuda_major = 9,
        .cuda_minor = 0,
        .architecture = 9,
        .sm_mhz = 1980,
        .memory_mhz = 3201,
        .pcie_generation = 5,
        .pci_device_id = 0x233510DE,
        .profiles = {{"1g.18gb", 1, 1, 16, 16384}, {"1g.35gb", 1, 2, 26, 33280},
            {"2g.35gb", 2, 2, 32, 33280}, {"3g.71gb", 3, 4, 60, 71424},
            {"4g.71gb", 4, 4, 64, 71424}, {"7g.141gb", 7, 8, 132, 142848}},
    },
};

/* Instances lie at multiples of their size; two slices of compute are not to be had behind the
 * sixth of memory. */
int profile_starts(const struct profile *profile, int starts[MIG_MEMORY_SLICES])
{
    int count = 0, last = MIG_COMPUTE_SLICES - profile->compute_slices;

    for (int at = 0; at <= last && at + profile->memory_slices <= MIG_MEMORY_SLICES;
         at += profile->memory_slices)
        starts[count++] = at;
    return count;
}

const struct kind *kind_at(int index)
{
    return index >= 0 && index < (int)(sizeof(kinds) / sizeof(kinds[0])) ? &kinds[index] : NULL;
}

int kind_find(struct span name)
{
    for (int i = 0; kind_at(i); i++) {
        if (span_is(name, kind_at(i)->name))
            return i;
    }
    return -1;
}

int kind_find_profile(const struct kind *kind, struct span name)
{
    for (int i = 0; kind->profiles[i].name; i++) {
        if (span_is(name, kind->profiles[i].name))
            return i;
    }
    return -1;
}
