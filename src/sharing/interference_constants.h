/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of the interference model. The core carries those of a host from its settings to
 * the policies. */
#ifndef COLLOC_SHARING_INTERFERENCE_CONSTANTS_H
#define COLLOC_SHARING_INTERFERENCE_CONSTANTS_H

/* data/sharing/interference.txt describes each. */
struct interference_constants {
    double switch_cost, cold_cost;    /* streams */
    double launch_cost, weight_power; /* MPS */
    double cache_cost, traffic_cost;  /* of kernels that run at the same time */
    /* In no file: what measured speeds of tasks have taught (core/state/delays.c). The logarithm of
     * the factor by which tasks delay each other more than the model says; 0: as it says. */
    double streams_delay_log, mps_delay_log;
};

/* As they were fitted to measurements. */
extern const struct interference_constants interference_measured;

/*
 * Finds a constant by its name in data/sharing/interference.txt, or by its former name there.
 *
 * Returns where it is, to be read or set, or NULL when there is none of that name.
 */
double *interference_constant(struct interference_constants *constants, const char *name);

#endif
