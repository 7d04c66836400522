/* SPDX-License-Identifier: Apache-2.0 */
/* What a training step asks of GPU and host: the sums that the roofline adds up. */
#ifndef COLLOC_PHYSICS_STEP_LOAD_H
#define COLLOC_PHYSICS_STEP_LOAD_H

#include "estimator/physics/kernel_time.h"
#include "estimator/physics/roofline.h"

enum { STEP_FP32_BYTES = 4, STEP_HALF_BYTES = 2 }; /* of an element */

/* Sums over a step. */
struct step_load {
    const struct gpu_traits *gpu;
    const struct activity_rates *rates;
    double gpu_us, resident_us, bytes; /* resident_us: of all SMs */
    double host_us[STEP_PHASES];
};

/* Returns the load of an empty step. */
struct step_load step_load_begin(const struct gpu_traits *gpu, const struct activity_rates *rates);

/* Adds the kernels of `calls` calls to the GPU's time. */
void step_load_kernel(struct step_load *load, const struct kernel *kernel, double calls);

/*
 * Adds a foreach operator of an optimizer, for GPU and host.
 *
 * tensors, bytes, elements: of a call: in its list; read and written; written
 */
void step_load_lists(
    struct step_load *load, double calls, double tensors, double bytes, double elements);

/* Returns the step with this load. */
struct activity step_load_activity(const struct step_load *load);

#endif
