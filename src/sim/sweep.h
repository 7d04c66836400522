/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many simulations side by side, on several threads. Two runs share only what both of them read, so
 * that each gives what it gives alone, whatever the number of threads.
 */
#ifndef COLLOC_SIM_SWEEP_H
#define COLLOC_SIM_SWEEP_H

#include "sim/simulate.h"

struct sweep;

struct sweep_outcome {
    int r; /* simulate's */
    struct simulation_result result;
    char *fault; /* its words when r is negative */
};

/* The simulations are borrowed; they begin in their order. `threads` is at least 1. NULL when
 * threads or memory are out. */
struct sweep *sweep_start(const struct simulation *simulations, int64_t n, int threads);

/* Waits until run `i` has ended, but no longer than that. NULL when it has not. */
const struct sweep_outcome *sweep_wait(struct sweep *sweep, int64_t i, int64_t timeout_us);

/* How many have ended. */
int64_t sweep_ended(struct sweep *sweep);

/* Stops those that run. */
void sweep_destroy(struct sweep *sweep);

#endif
