/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The phases of a job, followed from the state that Slurm shows.
 *
 *     pending in the intake partition        WAITING   (the window submits it to the core)
 *       the core places it                   PLACED    its pin is asked for
 *     pending in the run partition, pinned   PLACED    also when a new controller finds it so
 *     running                                RUNNING   STARTED
 *     ended                                  DONE      EXITED
 *     failed on shared GPUs                  EXAMINED  its error and output files are read:
 *                                               out of GPU memory: EXITED, and the core decides;
 *                                               Slurm requeues it, and it is pinned anew, alone
 *     pending again, by a user or because    WAITING   returned into the intake: its old pin would
 *     its node failed                                  start it where other jobs are now
 *
 * A state need not follow from the one before: an update reads each job only every few seconds, an
 * administrator may have changed it, and slurmctld may have crashed and lost the latest changes. So
 * each function here handles the record for a job in any phase.
 */
#include "slurm/job_phase.h"

#include "base/clock.h"
#include "base/log.h"
#include "slurm/job_gpu_oom.h"
#include "slurm/job_place.h"
#include "slurm/job_request.h"
#include "slurm/job_task.h"

/* Chosen: slurmctld asks all nodes for their jobs as soon as it has started again. */
#define FORGOTTEN_US (10 * SECOND_US)

/* It is in the run partition without a pin that counts: it recovers, or is returned. */
static void follow_away(
    struct slurm_controller *controller, struct tracked_job *job, const struct job_note *note)
{
    job->is_away = true;
    if (job->task && controller_task_state(controller, job) == TASK_QUEUED)
        controller_drop_task(controller, job);
    if (job->task || job->phase == JOB_EXAMINED)
        return; /* it recovers, and is pinned from here */
    if (note->state == NOTE_PINNED || note->state == NOTE_RECOVERING)
        controller_restore_place(controller, job, note);
    if (note->state == NOTE_RECOVERING && note->ooms > 0)
        controller_restore_recovering(controller, job);
    else if (tracked_job_may_have_crashed(job, note))
        controller_want_log(controller, job);
}

/* slurmctld has crashed before it saved that the job started, or ended: it shows the job as it was
 * before. Its processes on the node are ended when slurmd reports them, before the job may run
 * again. */
static void follow_forgotten_start(struct slurm_controller *controller, struct tracked_job *job)
{
    controller_drop_task(controller, job);
    controller->n_logs_wanted -= job->is_log_wanted;
    job->is_log_wanted = job->awaits_requeue = false;
    job->phase = JOB_WAITING;
    job->shards = 0;
    job->retry_us = controller->now_us + FORGOTTEN_US;
}

static void follow_pending(
    struct slurm_controller *controller, struct tracked_job *job, const struct job_note *note)
{
    const struct slurm_job *record = job->record;
    bool is_in_run = slurm_job_is_in(record, controller->options.run_partition);
    bool is_pinned = is_in_run && note->state == NOTE_PINNED && note->restart == record->restarts;
    job->is_eligible = !record->is_held && !slurm_job_has_dependency(record) &&
                       !record->is_completing && record->begin_s <= controller->wall_s;
    job->is_away = false;
    job->is_held_by_agent = (job->is_held_by_agent && record->is_held) ||
                            tracked_job_is_held_after_crash(job, note);
    job->submit_s = record->submit_s;
    if (job->phase == JOB_RUNNING || (job->phase == JOB_EXAMINED && job->task) ||
        job->awaits_requeue)
        follow_forgotten_start(controller, job);
    if (job->phase == JOB_DONE)
        job->phase = JOB_WAITING;
    if (is_pinned && job->phase != JOB_PLACED)
        is_pinned = controller_restore_placed(controller, job, false);
    if (is_pinned && !job->is_pinned)
        job->pinned_us = controller->now_us;
    job->is_pinned = is_pinned;
    if (is_pinned)
        return;
    if (!is_in_run)
        controller_follow_rules(controller, job, record);
    if (is_in_run) {
        follow_away(controller, job, note);
    } else if (job->task && !job->is_eligible) {
        controller_drop_task(controller, job); /* held, or it waits for another job again */
        job->phase = JOB_WAITING;
        job->shards = 0;
    }
}

static void follow_running(struct slurm_controller *controller, struct tracked_job *job)
{
    if (job->awaits_requeue)
        return; /* it was read before its agent requeued it; or slurmctld has forgotten that */
    bool was_running = job->phase == JOB_RUNNING;
    bool is_placed = job->phase == JOB_PLACED && job->task;
    if (is_placed && !controller_runs_as_placed(controller, job))
        log_warning(
            "job %u was changed by hand: it runs on %s with %s, where colloc has not placed it",
            job->slurm_id, job->record->node_list,
            job->record->gres ? job->record->gres : "no GPU");
    if (is_placed && controller_runs_as_placed(controller, job)) {
        controller_start_task(controller, job);
        job->phase = JOB_RUNNING;
    } else if (job->phase != JOB_RUNNING && !controller_restore_placed(controller, job, true)) {
        controller_drop_task(controller, job);
        job->phase = JOB_DONE; /* colloc has not placed it */
        node_table_add_other(&controller->nodes, job->record);
    }
    if (job->phase == JOB_RUNNING && !was_running &&
        id_map_set(&controller->by_id, job->slurm_id, job) < 0)
        controller->is_broken = true;
}

static enum failure_class failure_of(enum slurm_state state)
{
    switch (state) {
    case SLURM_STATE_COMPLETED:
        return FAILURE_NONE;
    case SLURM_STATE_FAILED:
        return FAILURE_PROGRAM;
    case SLURM_STATE_CANCELLED:
        return FAILURE_CANCELLED;
    case SLURM_STATE_TIMEOUT:
        return FAILURE_TIME_LIMIT;
    case SLURM_STATE_OUT_OF_MEMORY:
        return FAILURE_HOST_OOM;
    default:
        return FAILURE_LOST;
    }
}

static void follow_end(struct slurm_controller *controller, struct tracked_job *job)
{
    bool has_run = job->task && (job->phase == JOB_PLACED || job->phase == JOB_RUNNING);
    if (job->phase == JOB_DONE || job->phase == JOB_EXAMINED || job->awaits_requeue) {
        if (!job->task && job->record->is_completing)
            node_table_add_other(&controller->nodes, job->record);
        return;
    }
    if (has_run && controller_may_examine(controller, job->record, job->ooms)) {
        controller_want_log(controller, job);
        return;
    }
    if (has_run) {
        controller_exit_task(controller, job, failure_of(job->record->state));
        id_map_remove(&controller->by_id, job->slurm_id);
    } else {
        controller_drop_task(controller, job);
    }
    job->phase = JOB_DONE;
}

void controller_follow_phase(
    struct slurm_controller *controller, struct tracked_job *job, const struct job_note *note)
{
    if (slurm_state_is_end(job->record->state))
        follow_end(controller, job);
    else if (job->record->state == SLURM_STATE_PENDING)
        follow_pending(controller, job, note);
    else
        follow_running(controller, job);
}
