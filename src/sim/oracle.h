/* SPDX-License-Identifier: Apache-2.0 */
/* The policies of a simulation: the daemon's by their names, and the thesis's oracles
 * (section 6.3.3). */
#ifndef COLLOC_SIM_ORACLE_H
#define COLLOC_SIM_ORACLE_H

#include <stdbool.h>

#include "core/policy.h"

/* All names in the order help lists them, the daemon's first; ended by NULL. */
extern const char *const sim_policy_names[];

struct sim_policy {
    const struct policy *policy;
    bool knows_memory; /* an oracle: it is told what every task really takes */
};

/*
 * "magm", "lug", ...; or, in small or large letters, "OFF" (first-fit), "OBF" (best-fit), "OWF"
 * (magm) and "OLUG" (lug) with exact memory. False when there is none of this name.
 */
bool sim_policy_find(const char *name, struct sim_policy *ret_policy);

#endif
