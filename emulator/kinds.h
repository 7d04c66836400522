/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU models that can be pretended, with the figures NVIDIA publishes for them. */
#ifndef COLLOC_EMULATOR_KINDS_H
#define COLLOC_EMULATOR_KINDS_H

#include <stdint.h>

#include "base/text.h"

enum { MIG_COMPUTE_SLICES = 7, MIG_MEMORY_SLICES = 8, KIND_PROFILES_MAX = 6 };

/* A MIG profile; figures as `nvidia-smi mig -lgip` prints them. */
struct profile {
    const char *name; /* "1g.5gb"; NULL ends a list */
    int compute_slices;
    int memory_slices;
    int sm_count;
    int64_t total_mib;
};

/* Where instances of the profile may begin, in memory slices, as `nvidia-smi mig -lgipp` prints it.
 * How many. */
int profile_starts(const struct profile *profile, int starts[MIG_MEMORY_SLICES]);

struct kind {
    const char *name;     /* what --gpus takes: "A100-40GB" */
    const char *product;  /* what NVML answers: "NVIDIA A100-SXM4-40GB" */
    int64_t total_mib;    /* as nvidia-smi shows */
    int64_t reserved_mib; /* of that, kept by the driver: no process can have it */
    int sm_count;
    double tdp_w;
    double idle_w;
    double awake_w; /* clocks up, before any work is counted */
    int cuda_major, cuda_minor;
    unsigned architecture; /* NVML_DEVICE_ARCH_* */
    unsigned sm_mhz, memory_mhz;
    unsigned pcie_generation;
    unsigned pci_device_id;
    struct profile profiles[KIND_PROFILES_MAX + 1];
};

/* The kind at `index`, NULL past the last. The index is what the shared state keeps. */
const struct kind *kind_at(int index);

/* The index of the kind of that name, or -1. */
int kind_find(struct span name);

/* The index of the profile of that name, or -1. */
int kind_find_profile(const struct kind *kind, struct span name);

#endif
