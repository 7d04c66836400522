/* SPDX-License-Identifier: Apache-2.0 */
/* The policies of a simulation: the daemon's by their names, and the thesis's oracles
 * (section 6.3.3). */
#ifndef COLLOC_SIM_ORACLE_H
#define COLLOC_SIM_ORACLE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/policy.h"

/* Name number `i` (from 0): the daemon's policies, then the oracles. Returns NULL behind the
 * last. */
const char *sim_policy_name_at(size_t i);

struct sim_policy {
    const struct policy *policy;
    bool knows_memory; /* an oracle: it knows what every task really takes */
};

/*
 * The policy of a name.
 *
 * name: "magm", "lug", ...; or, in small or large letters, "OFF" (first-fit), "OBF" (best-fit),
 *       "OWF" (magm) or "OLUG" (lug), with exact memory.
 *
 * Returns false when there is none of this name.
 */
bool sim_policy_find(const char *name, struct sim_policy *ret_policy);

#endif
