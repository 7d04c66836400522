/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that ran out of GPU memory, or may have.
 *
 * A job must not fail because it shares a GPU: when it runs out of GPU memory, it is run again, in
 * the end alone on the GPU. Slurm shows only that it FAILED; there are two ways to find the cause.
 *
 *     the agent of its node sees it     it requeues the job, held, and reports "crashed"; the job
 *                                       waits for Slurm to show the requeue (awaits_requeue)
 *     no agent, or it came too late     the job is EXAMINED: job_files.c reads its error and
 *                                       output files; out of GPU memory, the controller requeues it
 *
 * Either may have happened before this controller began, or be lost when slurmctld crashes. Then
 * the job's note has it, with its number of restarts, which a requeue increases:
 *
 *     note                          record               the job
 *     pinned, restart=0             FAILED, restarts 0   is examined, if it failed lately
 *     pinned, restart=0             held, restarts 1     is examined: why was it requeued?
 *     recovering, restart=0 ooms=1  held, restarts 1     ran out of GPU memory: it is placed again
 *
 * In the core such a job is in the recovery queue, as if it had run and failed there as often as
 * its note counts.
 */
#include "slurm/job_gpu_oom.h"

#include "slurm/job_place.h"
#include "slurm/job_task.h"
#include "slurm/slurm_controller.h"

/* Chosen: a job that failed longer than this before the controller started is not examined. Slurm
 * forgets jobs after the same time (MinJobAge). */
#define EXAMINED_AFTER_S 300

bool controller_may_examine(
    const struct slurm_controller *controller, const struct slurm_job *record, int ooms)
{
    return record->state == SLURM_STATE_FAILED && record->may_requeue &&
           ooms < controller->options.settings.recoveries_max;
}

void controller_want_log(struct slurm_controller *controller, struct tracked_job *job)
{
    job->phase = JOB_EXAMINED;
    job->log_request = 0;
    job->examined = job->restarts + 1;
    controller->n_logs_wanted += !job->is_log_wanted;
    job->is_log_wanted = true;
}

bool controller_failed_unseen(
    const struct slurm_controller *controller, const struct slurm_job *record)
{
    struct job_note note;
    return controller_may_examine(controller, record, 0) &&
           record->end_s > controller->wall_s - EXAMINED_AFTER_S &&
           job_note_parse(record->admin_comment, &note) && note.state == NOTE_PINNED &&
           note.restart == record->restarts;
}

void controller_examine_unseen(struct slurm_controller *controller, struct tracked_job *job)
{
    job->phase = JOB_DONE;
    if (!controller_restore_placed(controller, job, true))
        return;
    controller_want_log(controller, job);
}

bool tracked_job_may_have_crashed(const struct tracked_job *job, const struct job_note *note)
{
    return job->record->is_held && note->state == NOTE_PINNED &&
           note->restart + 1 == job->restarts && job->examined != job->restarts + 1;
}

bool tracked_job_is_noted_crash(const struct tracked_job *job, const struct job_note *note)
{
    bool is_before = note->state == NOTE_RECOVERING && note->restart + 1 == job->restarts;
    return note->ooms > 0 && note->state != NOTE_PINNED &&
           (is_before || note->restart == job->restarts);
}

void controller_restore_recovering(struct slurm_controller *controller, struct tracked_job *job)
{
    controller_drop_task(controller, job);
    const int *gpus = controller_former_gpus(controller, job);
    if (!gpus)
        return;
    controller_submit_task(controller, job);
    for (int i = 0; i < job->ooms; i++) {
        controller_place_task(controller, job, gpus, job->request.gpus, true);
        controller_exit_task(controller, job, FAILURE_GPU_OOM);
        controller_apply(controller, (struct event){.kind = EVENT_RECOVER, .task = job->task});
    }
}

/* ---- the answer of the log, or of the node's agent, about a failure ---- */

void slurm_controller_log_examined(
    struct slurm_controller *controller, const struct slurm_job_key *key, bool is_gpu_oom)
{
    struct tracked_job *job = controller_find_job(controller, key->base, key->index);
    if (!job || job->phase != JOB_EXAMINED || job->log_request != key->request || !job->record)
        return;
    bool has_ended = job->task != 0; /* else it is held in the run partition */
    job->phase = has_ended && !is_gpu_oom ? JOB_DONE : JOB_WAITING;
    job->ooms += is_gpu_oom;
    if (is_gpu_oom)
        job->crashed = job->restarts + 1 + has_ended;
    if (has_ended) {
        controller_exit_task(controller, job, is_gpu_oom ? FAILURE_GPU_OOM : FAILURE_PROGRAM);
        id_map_remove(&controller->by_id, job->slurm_id);
        job->awaits_requeue = is_gpu_oom;
        job->shards = 0;
    } else if (is_gpu_oom) {
        job->is_held_by_agent = true; /* also if no node is known now, and it is returned */
        controller_restore_recovering(controller, job);
    }
    controller->has_news = true;
}

void slurm_controller_crashed(
    struct slurm_controller *controller, uint32_t id, uint32_t restarts, int64_t now_us)
{
    struct tracked_job *job = id_map_get(&controller->by_id, id);
    controller->now_us = now_us > controller->now_us ? now_us : controller->now_us;
    if (!job)
        job = controller_find_job(controller, id, SLURM_NO_INDEX);
    if (!job || !job->record)
        return;
    bool has_run = job->task && (job->phase == JOB_RUNNING || job->phase == JOB_EXAMINED);
    bool is_again = job->restarts == restarts + 1 && !job->task && job->reported != restarts + 1;
    if (is_again || (job->restarts == restarts && has_run))
        job->crashed = restarts + 2;
    if (is_again && !job->is_away && job->record->is_held) {
        job->ooms++; /* it was returned, because its error file says nothing */
        job->is_held_by_agent = true;
        job->reported = restarts + 1;
        controller->has_news = true;
        return;
    }
    if (job->restarts == restarts && has_run) {
        controller_apply(
            controller, (struct event){.kind = EVENT_EXTERNAL_SEEN, .task = job->task});
        controller_exit_task(controller, job, FAILURE_GPU_OOM);
        id_map_remove(&controller->by_id, job->slurm_id);
        job->awaits_requeue = true;
    } else if (is_again && job->is_away) {
        job->is_held_by_agent = true;
        job->reported = restarts + 1;
        job->ooms++;
        controller_restore_recovering(controller, job);
        job->phase = JOB_WAITING;
        controller->has_news = true;
        return;
    } else {
        return;
    }
    job->ooms++;
    job->phase = JOB_WAITING;
    job->shards = 0;
    controller->has_news = true;
}
