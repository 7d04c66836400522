/* SPDX-License-Identifier: Apache-2.0 */
/* Every combination of what a sweep varies, as simulations ready to run. */
#ifndef COLLOC_CLI_SWEEP_GRID_H
#define COLLOC_CLI_SWEEP_GRID_H

#include "cli/values.h"
#include "sim/simulate.h"

/* What is varied, in the order of the nesting: seeds change fastest. */
struct axes {
    struct names policies, estimators, knowns, sharings;
    struct values smact_max, min_free_gib, margin_gib, resamples, seeds;
};

void axes_fini(struct axes *axes);

/* What all runs have in common: paths (NULL: the default) and words as options have them. */
struct sweep_base {
    const char *trace, *tasks, *gpus, *kinds;
    double smact;
};

struct sweep_grid {
    struct simulation *simulations;
    struct sweep_point {
        char *key; /* its row's first columns, each with a comma behind it */
    } * points;
    int64_t n, room;

    struct gpu_kinds *kinds;
    struct cluster cluster;
    struct catalogue *catalogues; /* by estimator, and last the one that is told the truth */
    int n_catalogues;
};

/* The columns of a key. */
extern const char sweep_key_columns[];

/*
 * Oracles have one point for all estimators, called "declared". Axes and base are borrowed as long
 * as the grid is there. 0 or -errno with a fault. Ended by sweep_grid_fini either way.
 */
int sweep_grid_build(struct sweep_grid *grid, const struct axes *axes,
    const struct sweep_base *base, struct fault *fault);
void sweep_grid_fini(struct sweep_grid *grid);

#endif
