/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a training step alone on a GPU, and the activity of SMs and memory. The host launches
 * kernels one after the other, and the GPU runs them one after the other, behind the host: a step
 * takes as long as the slower of both. The kernels are those of an export, which lists every
 * operator by shape, or of a tape, which was derived from the layers of a summary.
 */
#ifndef COLLOC_PHYSICS_ROOFLINE_H
#define COLLOC_PHYSICS_ROOFLINE_H

#include "estimator/physics/activity_rates.h"
#include "estimator/physics/gpu_traits.h"
#include "estimator/physics/tape.h"
#include "model/export.h"
#include "training/optimizer.h"

struct activity {
    double step_us;
    double gpu_us;                /* of the kernels */
    double host_us;               /* of the host that launches them */
    double phase_us[STEP_PHASES]; /* the same by phase */
    double smact, dram;           /* 0..1, over a step */
};

/* Returns the mean activity of a GPU during one step of the tape. */
struct activity activity_of_tape(const struct tape *tape, const struct optimizer_traits *optimizer,
    const struct gpu_traits *gpu, const struct activity_rates *rates);

/* Returns the mean activity of a GPU during one step of an export that lists its operators. */
struct activity activity_of_export(const struct export *export, double batch,
    const struct gpu_traits *gpu, const struct activity_rates *rates);

#endif
