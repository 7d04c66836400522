/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of a job (enum job_phase), followed from the state that Slurm shows. */
#ifndef COLLOC_SLURM_JOB_PHASE_H
#define COLLOC_SLURM_JOB_PHASE_H

#include "slurm/controller_state.h"

/*
 * Moves the job into the phase of its record, and feeds the core.
 *
 * note: of a pending job in the run partition; of any other it may be empty
 */
void controller_follow_phase(
    struct slurm_controller *controller, struct tracked_job *job, const struct job_note *note);

#endif
