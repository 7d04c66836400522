/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's GPUs and waiting tasks as a question to the planner of MIG (sim/mig_advice.h). */
#ifndef COLLOC_CLI_MIG_INPUTS_H
#define COLLOC_CLI_MIG_INPUTS_H

#include <jansson.h>

#include "sim/mig_advice.h"

struct mig_inputs {
    struct gpu_kinds kinds;
    struct mig_advice_gpu gpus[MIG_ADVICE_GPUS_MAX];
    char labels[MIG_ADVICE_GPUS_MAX][16]; /* of the GPUs: "0" */
    int n_gpus;
    bool any_can_change;
    struct catalogue queue;
    const struct policy *policy;
    enum sharing sharing;
    int n_without_memory, n_without_smact, n_without_time; /* tasks with this assumption */
};

/*
 * Reads replies of the daemon.
 *
 * gpus, tasks: of GET /v1/gpus and GET /v1/tasks?state=live.
 * what_if:     take all GPUs whose kind has MIG, even if tasks run there, and live tasks; otherwise
 *              GPUs without tasks and processes, and waiting tasks.
 *
 * Returns 0, or -errno with a fault; mig_inputs_fini must follow in both cases.
 */
int mig_inputs_read(const json_t *gpus, const json_t *tasks, bool what_if, struct fault *fault,
    struct mig_inputs *ret_inputs);
void mig_inputs_fini(struct mig_inputs *inputs);

#endif
