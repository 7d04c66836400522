/* SPDX-License-Identifier: Apache-2.0 */
/* What the two actions of `colloc memnet` share. */
#ifndef COLLOC_CLI_MEMNET_RUN_H
#define COLLOC_CLI_MEMNET_RUN_H

#include "cli/command.h"
#include "memnet/dataset.h"

enum {
    MEMNET_OUTPUT,
    MEMNET_SEED,
    MEMNET_JOBS,
    MEMNET_ONLY,
    MEMNET_EPOCHS,
    MEMNET_WEIGHTS,
    MEMNET_PYTHON,
    MEMNET_OPTIONS
};

struct memnet_run {
    const struct invocation *invocation;
    struct dataset dataset;
};

/* Run an action. Return 0, or -errno with a fault. */
int memnet_run_train(struct memnet_run *run, struct fault *fault);
int memnet_run_eval(struct memnet_run *run, struct fault *fault);

#endif
