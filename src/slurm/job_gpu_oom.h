/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that ran out of GPU memory, and jobs that may have: the latter are examined. */
#ifndef COLLOC_SLURM_JOB_GPU_OOM_H
#define COLLOC_SLURM_JOB_GPU_OOM_H

#include "slurm/controller_state.h"

/* May the job of the record, which ran out of GPU memory `ooms` times before, have done so again,
 * and be run again? */
bool controller_may_examine(
    const struct slurm_controller *controller, const struct slurm_job *record, int ooms);

/* The job's files are to be read: slurm_controller_wanted_log() lists it. */
void controller_want_log(struct slurm_controller *controller, struct tracked_job *job);

/* A job that failed while no controller ran: was it for GPU memory beside others? */
bool controller_failed_unseen(
    const struct slurm_controller *controller, const struct slurm_job *record);

/* Examines such a job, if its record says where it was. */
void controller_examine_unseen(struct slurm_controller *controller, struct tracked_job *job);

/* Held in the run partition after a run: the agent of its node, or this controller before it was
 * killed, may have requeued it because it ran out of GPU memory. */
bool tracked_job_may_have_crashed(const struct tracked_job *job, const struct job_note *note);

/* Does the note say that the job ran out of GPU memory in its last run? It was written before the
 * requeue or after it. */
bool tracked_job_is_noted_crash(const struct tracked_job *job, const struct job_note *note);

/* Is the hold that of the requeue after it ran out of GPU memory? Also where slurmctld has crashed
 * and forgotten that it was released. A user's own hold is another one. */
static inline bool tracked_job_is_held_after_crash(
    const struct tracked_job *job, const struct job_note *note)
{
    return job->record->is_requeue_held &&
           (job->crashed == job->restarts + 1 || tracked_job_is_noted_crash(job, note));
}

/* The job ran out of GPU memory: it is put into the core's recovery queue. */
void controller_restore_recovering(struct slurm_controller *controller, struct tracked_job *job);

#endif
