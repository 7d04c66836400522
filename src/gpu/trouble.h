/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of a GPU that still answers: Xids, uncorrectable ECC errors, throttled clocks. */
#ifndef COLLOC_GPU_TROUBLE_H
#define COLLOC_GPU_TROUBLE_H

#include "gpu/gpu.h"
#include "gpu/nvml.h"

/* Of one card. Start with {0}. Values that a query does not answer stay as they were. */
struct trouble {
    unsigned xid_of_gpu; /* the first that makes the GPU unusable; 0: none. Stays until
                            gpu_set_forget_xids */
    unsigned xid_last;
    int64_t xid_last_us;

    unsigned long long ecc_uncorrected; /* since the driver was loaded */
    bool remap_failed, remap_pending, retirement_pending;
    int64_t next_query_us; /* of these four */

    unsigned long long held_down; /* NVML's reasons for throttling by the hardware */
    int64_t held_down_since_us;
    int64_t clocks_next_query_us;
};

/* Records an Xid that the driver reported. */
void trouble_add_xid(struct trouble *trouble, unsigned xid, int64_t now_us);

/* Queries the card where that is due. */
void trouble_update(
    struct trouble *trouble, const struct nvml *nvml, nvml_device card, int64_t now_us);

/* Fills in sample->trouble: the most serious finding. */
void trouble_report(const struct trouble *trouble, struct gpu_sample *sample);

#endif
