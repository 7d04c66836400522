/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a training step alone on a GPU, and the activity of SMs and memory. A roofline over
 * the operations of a tape: each kernel takes the longer of the times of its multiply-adds and of
 * its bytes, on as many SMs as its output fills, and at least the time of its launch on the host.
 * Exact enough to rank tasks, not to bill them.
 */
#ifndef COLLOC_PHYSICS_ROOFLINE_H
#define COLLOC_PHYSICS_ROOFLINE_H

#include "estimator/physics/gpu_traits.h"
#include "estimator/physics/tape.h"
#include "training/optimizer.h"

/*
 * The time of a launch on the host in a PyTorch program, and the fraction of the data sheet's rates
 * that its kernels reach: activity_rates.inc, fitted to step times in data/memory by
 * scripts/fit-estimators.
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

/* Returns the mean activity of a GPU during one step of the tape. */
struct activity activity_estimate(const struct tape *tape, const struct optimizer_traits *optimizer,
    const struct gpu_traits *gpu, const struct activity_rates *rates);

#endif
