/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a trace of arrivals through the scheduler over simulated GPUs. The core and the policies are
 * those of the daemon; the model of the GPUs is that of src/sharing and gpu_model.c.
 *
 * One thing is approximated: the daemon samples each GPU once a second, the simulator only where a
 * sample can change a decision (sampling.c has the rules), and adds one of three of the other
 * samples before the activity changes. So the weight of single samples in the mean over the window
 * is approximate within one window after a change. With `every_second` nothing is approximated.
 */
#ifndef COLLOC_SIM_SIMULATE_H
#define COLLOC_SIM_SIMULATE_H

#include "sim/simulation.h"

/*
 * Runs one simulation. Independent of other runs: several may run on several threads.
 *
 * simulation: borrowed until the return.
 * ret_result: filled as far as the run went, in each case.
 *
 * Returns 0; -EDEADLK if tasks never started; -ECANCELED (without a fault); or another -errno of
 * the files and of memory. Else the fault says what is wrong.
 */
int simulate_trace(
    const struct simulation *simulation, struct fault *fault, struct simulation_result *ret_result);

/*
 * Runs a simulation with which another is compared: as simulate_trace, without outputs.
 *
 * Returns as simulate_trace, but COMPARISON_NONE instead of -EDEADLK, without a fault: tasks never
 * started or ended, so there is nothing to compare with.
 */
enum { COMPARISON_NONE = 1 };
int simulate_comparison(
    const struct simulation *simulation, struct fault *fault, struct simulation_result *ret_result);

#endif
