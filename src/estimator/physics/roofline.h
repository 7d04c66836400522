/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training step does to a GPU that it has to itself: how long it takes, how busy the SMs and
 * the memory are. A roofline over the operations of a tape: each kernel takes the longer of its
 * multiply-adds and its bytes, on as many SMs as its output fills, and no less than the time that
 * the host needs to launch it. Good to rank tasks by, not to bill them.
 */
#ifndef COLLOC_PHYSICS_ROOFLINE_H
#define COLLOC_PHYSICS_ROOFLINE_H

#include "estimator/physics/gpu_traits.h"
#include "estimator/physics/tape.h"
#include "training/optimizer.h"

/*
 * What a launch costs a PyTorch program on the host, and how much of the data sheet's rates its
 * kernels reach: activity_rates.inc, from step times in data/memory by scripts/fit-estimators.
 */
struct activity_rates {
    double launch_us;
    double matrix_share, bandwidth_share;
};

extern const struct activity_rates activity_rates;

struct activity {
    double step_us;
    double smact, dram; /* 0..1, over a step */
};

struct activity activity_estimate(const struct tape *tape, const struct optimizer_traits *optimizer,
    const struct gpu_traits *gpu, const struct activity_rates *rates);

#endif
