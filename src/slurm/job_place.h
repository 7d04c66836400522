/* SPDX-License-Identifier: Apache-2.0 */
/* Where a job is, and how it is found again in Slurm's records and the job's note. */
#ifndef COLLOC_SLURM_JOB_PLACE_H
#define COLLOC_SLURM_JOB_PLACE_H

#include "slurm/controller_state.h"

/* Sets the nodes and the indices that the job has, by its GPUs, which are listed node by node. */
void controller_set_place(
    struct slurm_controller *controller, struct tracked_job *job, const int *gpus, int n);

/* The job is on no node. */
void controller_clear_place(struct tracked_job *job);

/* The names of the nodes that the job is on, or was last, comma-separated; "": none. */
const char *controller_nodes_of(
    const struct slurm_controller *controller, const struct tracked_job *job);

/* Finds again where a job is pinned or runs, and puts it into the core there. Returns false when
 * the record does not say it. */
bool controller_restore_placed(
    struct slurm_controller *controller, struct tracked_job *job, bool is_running);

/* Sets the place of the note; without its nodes, where these are not known now. */
void controller_restore_place(
    struct slurm_controller *controller, struct tracked_job *job, const struct job_note *note);

/* Does it run on the GPUs where the core has placed it? Its pin may have been changed by hand. */
bool controller_runs_as_placed(struct slurm_controller *controller, const struct tracked_job *job);

/* GPUs in the number that the job requests: its last ones; or any others, if these are unknown.
 * Returns a list that is valid until the next such call, or NULL: there are too few. */
const int *controller_former_gpus(
    struct slurm_controller *controller, const struct tracked_job *job);

#endif
