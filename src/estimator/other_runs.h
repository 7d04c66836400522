/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs of the same network in other configurations say of a request: with another batch,
 * optimizer or precision, or several of these.
 */
#ifndef COLLOC_ESTIMATOR_OTHER_RUNS_H
#define COLLOC_ESTIMATOR_OTHER_RUNS_H

#include "estimator/estimator.h"
#include "estimator/physics/physics.h"

enum { OTHER_RUNS_MAX = 4 }; /* chosen: each costs a replay, and further ones tell little more */

struct other_runs {
    const struct past_run *runs[OTHER_RUNS_MAX];
    int n;
};

/* Adds a run of another configuration. Of one configuration the run that took most stays, and of
 * more than OTHER_RUNS_MAX those with the largest weights, of equal ones the newest. */
void other_runs_add(
    const struct estimate_request *request, const struct past_run *run, struct other_runs *others);

/*
 * Returns the physical estimate above the context with the batch, optimizer and precision of a run
 * where it has them, by rules alone, without the measured kernels of an export. 0: there is none.
 *
 * run: NULL: with those of the request
 */
double physics_of_run(const struct estimate_request *request, const struct past_run *run,
    struct physics *ret_physics);

/*
 * Returns by what factor the request takes more than the physical estimate says (above the
 * context), from all runs: a mean of the logarithms, of measured to physical memory of each, with
 * weights, and one of no correction.
 *
 * ret_used: how many runs it rests on; the physical estimate does not know the others
 */
double other_runs_factor(
    const struct estimate_request *request, const struct other_runs *others, int *ret_used);

#endif
