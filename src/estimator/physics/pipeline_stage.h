/* SPDX-License-Identifier: Apache-2.0 */
/* Pipeline parallelism: the stage that takes the most memory. */
#ifndef COLLOC_PHYSICS_PIPELINE_STAGE_H
#define COLLOC_PHYSICS_PIPELINE_STAGE_H

#include "estimator/physics/allocator_replay.h"

struct pipeline {
    int stages, micro_batches;
};

/*
 * Replays each stage, and keeps the footprint of the largest.
 *
 * tape:      of the whole network
 * ret_stage: the largest, from 1
 *
 * Returns as allocator_replay_tape; with a fault -EINVAL: there are more stages than operations.
 */
int pipeline_replay(const struct tape *tape, const struct model *model,
    const struct pipeline *pipeline, const struct optimizer_traits *optimizer,
    const struct gpu_traits *gpu, uint32_t variant, struct fault *fault,
    struct footprint *ret_footprint, int *ret_stage);

#endif
