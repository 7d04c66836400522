/* SPDX-License-Identifier: Apache-2.0 */
/* The task of the core for a job of Slurm. */
#ifndef COLLOC_SLURM_JOB_TASK_H
#define COLLOC_SLURM_JOB_TASK_H

#include "slurm/controller_state.h"

/* The state of the job's task; TASK_CANCELLED when it has none. */
static inline enum task_state controller_task_state(
    const struct slurm_controller *controller, const struct tracked_job *job)
{
    const struct task *task = core_task(controller->core, job->task);
    return task ? task->state : TASK_CANCELLED;
}

/* Puts the job into the core, as the next task. */
void controller_submit_task(struct slurm_controller *controller, struct tracked_job *job);

/* Places the task where the job is pinned or runs already: on the first `n` of `gpus`. */
void controller_place_task(struct slurm_controller *controller, struct tracked_job *job,
    const int *gpus, int n, bool is_running);

/* The job runs on the GPUs of its task. */
void controller_start_task(struct slurm_controller *controller, struct tracked_job *job);

/* The job has ended. `failure`: FAILURE_NONE when it succeeded. */
void controller_exit_task(
    struct slurm_controller *controller, const struct tracked_job *job, enum failure_class failure);

/* The core forgets the job's task. */
void controller_forget_task(struct slurm_controller *controller, struct tracked_job *job);

/* Removes the job from the core, in any state of its task. */
void controller_drop_task(struct slurm_controller *controller, struct tracked_job *job);

/* Compares the limit of the job's task, which it has, with the record. */
void controller_update_time_limit(struct slurm_controller *controller, struct tracked_job *job);

/* The limit may have been changed, or the job has started. Most jobs have no task. */
static inline void controller_follow_time_limit(
    struct slurm_controller *controller, struct tracked_job *job)
{
    if (job->task)
        controller_update_time_limit(controller, job);
}

#endif
