/* SPDX-License-Identifier: Apache-2.0 */
/* What `colloc simulate` prints of a simulation that has run. docs/simulate.md has the keys. */
#ifndef COLLOC_CLI_SIMULATION_REPORT_H
#define COLLOC_CLI_SIMULATION_REPORT_H

#include "cli/simulating_mixes.h"
#include "sim/simulate.h"
#include "sim/user_totals.h"

/* All borrowed. */
struct simulation_report {
    const struct simulation *simulation;
    const struct simulating_mixes *mixes; /* read where simulation->mixes is set */
    const struct simulation_result *result;
    const struct user_totals *users;
};

/* Prints lines for people: of preemption, trials, promises, mixes, users and services only where
 * the simulation has them. */
void simulation_report_print(const struct simulation_report *report);

/* Prints the same as one JSON object. */
void simulation_report_print_json(const struct simulation_report *report);

#endif
