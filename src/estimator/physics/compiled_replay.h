/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a compiled training step of JAX takes from the device. */
#ifndef COLLOC_PHYSICS_COMPILED_REPLAY_H
#define COLLOC_PHYSICS_COMPILED_REPLAY_H

#include "base/fault.h"
#include "estimator/physics/allocator_replay.h"
#include "model/compiled_step.h"

/*
 * Replays the arguments and three steps through the rules of XLA's allocator, set to grow.
 *
 * Returns 0, or with a fault: -ERANGE (more than any device has) or -ENOMEM.
 */
int compiled_replay(
    const struct compiled_step *step, struct fault *fault, struct footprint *ret_footprint);

#endif
