/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many simulations on several threads. Contract: the result of a run is the same as that of the run
 * alone, whatever the number of threads.
 */
#ifndef COLLOC_SIM_SWEEP_H
#define COLLOC_SIM_SWEEP_H

#include "sim/simulate.h"

struct sweep;

struct sweep_outcome {
    int r; /* what simulate_trace returned */
    struct simulation_result result;
    char *fault; /* its text if r is negative */
};

/*
 * Starts the runs, in their order.
 *
 * simulations: `n` of them, borrowed until sweep_destroy.
 * threads:     at least 1; fewer are started if the system has no more.
 *
 * Returns the sweep, for sweep_destroy; NULL without memory or threads.
 */
struct sweep *sweep_start(const struct simulation *simulations, int64_t n, int threads);

/*
 * Waits for the end of run `i`, at most `timeout_us`.
 *
 * Returns its outcome, valid until sweep_destroy; NULL if it has not ended.
 */
const struct sweep_outcome *sweep_wait(struct sweep *sweep, int64_t i, int64_t timeout_us);

/* Returns the number of runs that have ended. */
int64_t sweep_ended(struct sweep *sweep);

/* Cancels the runs that have not ended, and frees the sweep. NULL is allowed. */
void sweep_destroy(struct sweep *sweep);

#endif
