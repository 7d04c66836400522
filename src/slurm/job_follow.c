/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's records of jobs as events of the core.
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
 * Where a note and Slurm's own fields differ, an administrator has changed the job by hand, and
 * Slurm's fields count: what a job has is what tres_per_node and its nodes say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "slurm/controller_state.h"
#include "slurm/job_array.h"
#include "slurm/job_gpu_oom.h"
#include "slurm/job_place.h"
#include "slurm/job_request.h"
#include "slurm/job_task.h"

/* Chosen: slurmctld asks all nodes for their jobs as soon as it has started again. */
#define FORGOTTEN_US (10 * SECOND_US)

/* ---- a new record of a known job ---- */

/* Slurm counts the restart of a job that is requeued at once, and sets its time of submission anew
 * when it has left its node, some time later. A job that got an id that is used again has not been
 * restarted. */
static bool is_same_run(const struct tracked_job *job, const struct slurm_job *record)
{
    bool is_requeue_complete = record->restarts > 0 && record->submit_s > job->submit_s;
    return job->restarts == record->restarts &&
           (job->submit_s == record->submit_s || is_requeue_complete);
}

static void forget_request(struct tracked_job *job)
{
    job->request_state = REQUEST_UNKNOWN;
    job->script_request = 0;
    job->request = (struct task_request){0};
    job->attempt = job->ooms = job->failed_tries = 0;
    controller_clear_place(job);
}

/* The job was requeued; or its id was used again, for another job. */
static void begin_new_run(
    struct slurm_controller *controller, struct tracked_job *job, const struct slurm_job *record)
{
    bool is_requeued = record->restarts > job->restarts;
    bool is_expected = job->awaits_requeue && record->state == SLURM_STATE_PENDING;
    job->awaits_requeue = job->is_pinned = job->is_held_by_agent = false;
    job->submit_s = record->submit_s;
    job->restarts = record->restarts;
    if (is_expected)
        return;
    controller_drop_task(controller, job);
    job->phase = JOB_WAITING;
    job->shards = 0;
    if (!is_requeued)
        forget_request(job);
}

static struct tracked_job *add_job(struct slurm_controller *controller,
    const struct slurm_job *record, uint32_t base, uint32_t index)
{
    struct tracked_job *job = calloc(1, sizeof *job);
    if (!job ||
        ARRAY_RESERVE(controller->all, controller->all_capacity, controller->n_all + 1) < 0 ||
        id_map_set(&controller->jobs, (uint64_t)base << 32 | index, job) < 0) {
        free(job);
        controller->is_broken = true;
        return NULL;
    }
    controller->all[controller->n_all++] = job;
    job->base = base;
    job->index = index;
    job->submit_s = record->submit_s;
    job->restarts = record->restarts;
    job->node = -1;
    controller_follow_rules(controller, job, record);
    return job;
}

/* While a job waits, an administrator may change its number of nodes, or Slurm compute another. */
static bool has_other_nodes(const struct slurm_controller *controller,
    const struct tracked_job *job, const struct slurm_job *record)
{
    return record->state == SLURM_STATE_PENDING && !record->is_completing &&
           record->nodes != job->nodes_shown && job->phase == JOB_WAITING &&
           (!job->task || controller_task_state(controller, job) == TASK_QUEUED);
}

/* ---- the states of Slurm ---- */

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
 * before. What still runs on the node is ended when slurmd reports it, before the job may run
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

/* ---- one record ---- */

static void take_facts(struct slurm_controller *controller, struct tracked_job *job,
    const struct slurm_job *record, const struct job_note *note, bool is_wanted_new)
{
    job->record = record;
    controller->n_seen += job->seen != controller->update;
    job->seen = controller->update;
    job->has_comment = record->comment && *record->comment;
    job->submit_s = record->submit_s;
    job->slurm_id = record->id;
    job->priority = record->priority;
    job->uid = record->uid;
    job->gid = record->gid;
    job->cpus = node_cpus_of_job(record, "");
    job->memory_bytes = record->memory_bytes > 0 ? record->memory_bytes : -1;
    job->ooms = note->ooms > job->ooms ? note->ooms : job->ooms;
    job->attempt = note->attempt > job->attempt ? note->attempt : job->attempt;
    /* While it completes, Slurm counts only the nodes that it has not left. */
    bool is_due = is_wanted_new || note->want > 0 || note->total > 0;
    if (!job->task && is_due && !record->is_completing)
        tracked_job_set_wanted(job, record, note);
}

static bool needs_note(
    const struct slurm_controller *controller, const struct slurm_job *record, bool is_new)
{
    return is_new || (record->state == SLURM_STATE_PENDING &&
                         slurm_job_is_in(record, controller->options.run_partition));
}

static struct tracked_job *follow_one(struct slurm_controller *controller,
    const struct slurm_job *record, struct tracked_job *job, uint32_t base, uint32_t index)
{
    struct job_note note = {.smact_percent = -1};
    bool is_end = slurm_state_is_end(record->state), is_new = !job;
    if (is_new && is_end && !controller_failed_unseen(controller, record)) {
        if (record->is_completing)
            node_table_add_other(&controller->nodes, record);
        return NULL;
    }
    bool is_new_run = is_new || !is_same_run(job, record);
    bool is_resized = !is_new_run && has_other_nodes(controller, job, record);
    bool is_wanted_new = is_new_run || is_resized || job->request.gpus == 0;
    /* also the former run, again, where slurmctld has crashed and forgotten the requeue */
    bool is_unseen = is_end && is_new_run &&
                     (is_new || controller_failed_unseen(controller, record));
    if (needs_note(controller, record, is_wanted_new))
        job_note_parse(record->admin_comment, &note);
    job = is_new ? add_job(controller, record, base, index) : job;
    if (!job)
        return NULL;
    if (is_new_run && !is_new)
        begin_new_run(controller, job, record);
    if (is_resized)
        controller_drop_task(controller, job);
    take_facts(controller, job, record, &note, is_wanted_new);
    if (is_unseen)
        controller_examine_unseen(controller, job);
    else if (is_end)
        follow_end(controller, job);
    else if (record->state == SLURM_STATE_PENDING)
        follow_pending(controller, job, &note);
    else
        follow_running(controller, job);
    if (!is_end)
        controller_follow_time_limit(controller, job);
    return job;
}

/* Tasks that are not split off have one record; the first of them that may run are followed. */
static void follow_array(struct slurm_controller *controller, const struct slurm_job *record)
{
    uint32_t base = record->array_id ? record->array_id : record->id, index;
    int64_t left = controller_array_left(controller, record, base);
    struct job_array_indices indices = job_array_indices(record->array_indices);
    for (; left > 0 && job_array_next(&indices, &index); left--)
        follow_one(controller, record, controller_find_job(controller, base, index), base, index);
}

/* The job of the record; most often the one that stood at this place of the list before. */
static struct tracked_job *find_hinted(
    const struct slurm_controller *controller, size_t place, uint32_t base, uint32_t index)
{
    struct tracked_job *hint = place < controller->n_hints ? controller->hints[place] : NULL;
    if (hint && hint->base == base && hint->index == index)
        return hint;
    return controller_find_job(controller, base, index);
}

void controller_follow(
    struct slurm_controller *controller, const struct slurm_job *record, size_t place)
{
    bool is_ours = slurm_job_is_in(record, controller->options.intake_partition) ||
                   slurm_job_is_in(record, controller->options.run_partition);
    struct tracked_job *job = NULL;
    uint32_t base = record->array_id ? record->array_id : record->id;
    uint32_t index = record->array_id ? record->array_index : SLURM_NO_INDEX;
    if (!is_ours && slurm_job_holds_node(record))
        node_table_add_other(&controller->nodes, record);
    else if (is_ours && record->array_indices && *record->array_indices)
        follow_array(controller, record);
    else if (is_ours)
        job = follow_one(
            controller, record, find_hinted(controller, place, base, index), base, index);
    controller->hints[place] = job;
    controller_note_dependent(controller, record);
}

void controller_sweep(struct slurm_controller *controller)
{
    for (size_t i = 0; i < controller->n_all && controller->n_seen < controller->n_all; i++) {
        struct tracked_job *job = controller->all[i];
        if (job->seen == controller->update)
            continue;
        job->record = NULL;
        controller->n_logs_wanted -= job->is_log_wanted;
        job->is_log_wanted = false;
        job->phase = JOB_DONE;
        controller_drop_task(controller, job);
    }
}
