/* SPDX-License-Identifier: Apache-2.0 */
/* A job's request to Slurm: nodes, features, and the number of its GPUs. */
#ifndef COLLOC_SLURM_JOB_REQUEST_H
#define COLLOC_SLURM_JOB_REQUEST_H

#include "slurm/controller_state.h"

/* Takes over -w, -x and -C, which an administrator may change at any time while the job waits. */
void controller_follow_rules(
    struct slurm_controller *controller, struct tracked_job *job, const struct slurm_job *record);

/* Takes over how many GPUs the job wants, and of how many nodes. */
void tracked_job_set_wanted(
    struct tracked_job *job, const struct slurm_job *record, const struct job_note *note);

#endif
