/* SPDX-License-Identifier: Apache-2.0 */
/* The combinations of the values that a sweep varies, as simulations. */
#ifndef COLLOC_CLI_SWEEP_GRID_H
#define COLLOC_CLI_SWEEP_GRID_H

#include "cli/values.h"
#include "core/setting_table.h"
#include "sim/simulate.h"

/* The settings of the core that a sweep varies, in the order of the nesting. */
enum {
#define SWEPT_OPTION(id, ...) SWEPT_##id,
#include "core/settings.def"
    SWEPT_SETTINGS
};
extern const enum core_setting_id swept_settings[SWEPT_SETTINGS];

/* The lists of values, in the order of the nesting: seeds change fastest. */
struct axes {
    struct names policies, estimators, knowns, sharings, backfills;
    struct values settings[SWEPT_SETTINGS]; /* sizes in GiB */
    struct values resamples, seeds;
};

/* Releases the lists of values. */
void axes_fini(struct axes *axes);

/* What all runs share: paths (NULL: the default) and other values as in the options. */
struct sweep_base {
    const char *trace, *tasks, *gpus, *kinds;
    double smact;
};

struct sweep_grid {
    struct simulation *simulations;
    struct sweep_point {
        char *key; /* the first columns of its row, each followed by a comma */
    } * points;
    int64_t n;
    size_t simulation_capacity, point_capacity;

    struct gpu_kinds *kinds;
    struct cluster cluster;
    struct catalogue *catalogues; /* by estimator; the last has the exact memory */
    int n_catalogues;
};

/* The columns of a key. */
extern const char sweep_key_columns[];

/*
 * Makes the simulations of all combinations. An oracle has one for all estimators, under the name
 * "declared".
 *
 * axes, base: borrowed until sweep_grid_fini.
 *
 * Returns 0, or -errno with a fault; sweep_grid_fini must follow in both cases.
 */
int sweep_grid_build(struct sweep_grid *grid, const struct axes *axes,
    const struct sweep_base *base, struct fault *fault);
void sweep_grid_fini(struct sweep_grid *grid);

#endif
