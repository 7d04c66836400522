/* SPDX-License-Identifier: Apache-2.0 */
/* The stretch of a run: how much longer tasks take than first come, first served on whole GPUs. */
#ifndef COLLOC_SIM_STRETCH_H
#define COLLOC_SIM_STRETCH_H

#include "sim/simulate.h"

/*
 * As simulate_trace, and sets result->max_stretch: for each task its completion time, divided by
 * the one in a second run of the same trace with the policy exclusive; the greatest of these. It is
 * not valid if tasks never ended in the second run, or none ended in both.
 *
 * Returns as simulate_trace, of either run; -EDEADLK only of the first one.
 */
int simulate_with_stretch(
    const struct simulation *simulation, struct fault *fault, struct simulation_result *ret_result);

#endif
