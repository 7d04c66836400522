/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's loop: when it reads Slurm's jobs, and where its changes are made. */
#ifndef COLLOC_SLURM_SLURM_LOOP_H
#define COLLOC_SLURM_SLURM_LOOP_H

#include "slurm/slurm_config.h"
#include "slurm/slurm_job.h"

/* Runs until SIGTERM or SIGINT. `calls`: borrowed. Returns 0, or -errno with a fault. */
int slurm_loop_run(
    const struct slurm_config *config, const struct slurm_calls *calls, struct fault *fault);

#endif
