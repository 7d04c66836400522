/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over tasks and GPUs, from which the result of a simulation is calculated. */
#ifndef COLLOC_SIM_RUN_TOTALS_H
#define COLLOC_SIM_RUN_TOTALS_H

#include "core/task.h"
#include "sim/bound.h"
#include "sim/simulated_gpus.h"
#include "sim/simulation.h"

struct run_totals {
    int64_t first_us, last_us;        /* the first submission; the last end */
    int64_t wait_us, exec_us, jct_us; /* sums over the tasks that ended */
    struct bound bound;
};

/* Totals of no task. */
struct run_totals run_totals_start(const struct cluster *cluster);

/* Adds a submitted task, in order of time. `solo_s`: how long it would run alone. */
void run_totals_add_submitted(
    struct run_totals *totals, int64_t time_us, const struct sim_task *type, double solo_s);

/* Adds a service that was submitted, in order of time. */
void run_totals_add_service(struct run_totals *totals, int64_t time_us);

/* A service that ends by itself has ended. */
void run_totals_end_service(struct run_totals *totals, int64_t time_us);

/* Adds a task that has ended. */
void run_totals_add_ended(struct run_totals *totals, const struct task *ended);

/*
 * Calculates the times, the energy and the mean activity of the result from its counts of completed
 * and failed tasks; leaves it as it is if nothing has ended. Accounts the GPUs up to the last end.
 */
void run_totals_calculate(
    const struct run_totals *totals, struct simulated_gpus *gpus, struct simulation_result *result);

#endif
