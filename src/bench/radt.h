/* SPDX-License-Identifier: Apache-2.0 */
/* Reads radT's tables of experiments: see experiment.h. */
#ifndef COLLOC_BENCH_RADT_H
#define COLLOC_BENCH_RADT_H

#include "base/columns.h"
#include "bench/experiment.h"

/* Bytes of a table. Chosen: 100,000 rows of some 600. */
enum { RADT_TABLE_MAX = 64 << 20 };

/* Appends the table's groups to *experiment. Returns 0, or -errno with a fault; the groups that
 * were read stay in *experiment either way. */
int radt_read(struct columns *columns, const struct experiment_defaults *defaults,
    struct fault *fault, struct experiment *experiment);

#endif
