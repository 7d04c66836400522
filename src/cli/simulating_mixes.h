/* SPDX-License-Identifier: Apache-2.0 */
/* The options --mixes and --mixes-missing of `colloc simulate` (sim/mixes.h). */
#ifndef COLLOC_CLI_SIMULATING_MIXES_H
#define COLLOC_CLI_SIMULATING_MIXES_H

#include <jansson.h>

#include "sim/simulate.h"

struct simulating_mixes {
    struct mixes mixes;
    struct mix_use use;
    const char *gpu; /* the kind of all simulated GPUs, borrowed */
};

/*
 * Reads measured mixes for the simulation's GPUs.
 *
 * path:       of the table; NULL: none is measured, all are missing
 * simulation: gets the mixes; its cluster is prepared
 *
 * Returns 0, or -errno with a fault; simulating_mixes_fini must follow in both cases.
 */
int simulating_mixes_read(struct simulating_mixes *mixes, const char *path,
    struct simulation *simulation, struct fault *fault);
void simulating_mixes_fini(struct simulating_mixes *mixes);

/* Prints a line about the mixes: how much of the shared time was measured, and how long measuring
 * the rest takes. */
void simulating_mixes_print(const struct simulating_mixes *mixes);

/* The same as JSON. */
json_t *simulating_mixes_json(const struct simulating_mixes *mixes);

#endif
