/* SPDX-License-Identifier: Apache-2.0 */
/* The roster of a card: the properties that may change while the driver runs (MIG mode, compute
 * mode, MIG instances). */
#ifndef COLLOC_GPU_ROSTER_H
#define COLLOC_GPU_ROSTER_H

#include "gpu/gpu.h"
#include "gpu/nvml.h"

/* Chosen: more than any card can be divided into (seven today), so that arrays never grow. */
enum { CARD_INSTANCES_MAX = 16 };

struct roster {
    enum gpu_mig_mode mig_mode;
    enum gpu_compute_mode compute_mode;
    struct reading card_slices; /* see gpu_info */
    bool instances_known;       /* `instance` is complete */
    unsigned count;             /* of MIG instances */
    struct roster_instance {
        unsigned number; /* nvidia-smi's number of the MIG device on its card */
        nvml_device handle;
        char uuid[NVML_UUID_SIZE];
    } instance[CARD_INSTANCES_MAX];
};

/* Queries the driver. The roster of a card that does not answer is incomplete. */
void roster_read(const struct nvml *nvml, nvml_device card, struct roster *ret_roster);

#endif
