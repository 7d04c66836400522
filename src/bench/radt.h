/* SPDX-License-Identifier: Apache-2.0 */
/* radT's tables of experiments: see experiment.h. */
#ifndef COLLOC_BENCH_RADT_H
#define COLLOC_BENCH_RADT_H

#include "base/columns.h"
#include "bench/experiment.h"

/* 0 with its groups in *experiment, or a fault; what was read stays in *experiment either way. */
int radt_read(struct columns *columns, const struct experiment_defaults *defaults,
    struct fault *fault, struct experiment *experiment);

#endif
