/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a GPU that still answers: Xids, memory errors that ECC could not correct,
 * clocks held down. */
#ifndef COLLOC_GPU_TROUBLE_H
#define COLLOC_GPU_TROUBLE_H

#include "gpu/gpu.h"
#include "gpu/nvml.h"

/* Of one card. Start with {0}. */
struct trouble {
    unsigned xid_of_gpu; /* the first that condemns the GPU; 0: none. Holds until somebody says that
                            it is well */
    unsigned xid_last;
    int64_t xid_last_us;

    unsigned long long ecc_uncorrected; /* since the driver was loaded */
    bool remap_failed, remap_pending, retirement_pending;
    int64_t ask_again_us; /* these four */

    unsigned long long held_down; /* NVML's reasons that count */
    int64_t held_down_since_us;
    int64_t held_down_ask_again_us;
};

void trouble_note_xid(struct trouble *trouble, unsigned xid, int64_t now_us);

/* Asks the card. What it has never told is no trouble; what it has told of its memory holds until
 * it tells otherwise.
 */
void trouble_look(
    struct trouble *trouble, const struct nvml *nvml, nvml_device card, int64_t now_us);

/* Fills in sample->trouble. */
void trouble_tell(const struct trouble *trouble, struct gpu_sample *sample);

#endif
