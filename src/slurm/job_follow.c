/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record of Slurm, and its job.
 *
 * Each update has the records of all jobs, most of them unchanged. A record is compared with the
 * controller's data about its job; it is one of these:
 *
 *     another partition      its CPUs and memory are counted (node_table.h), nothing else
 *     an array that waits    its first tasks, as far as its limit allows (job_array.c)
 *     a new id               a job to be tracked; not if it has ended, or only to be examined
 *     more restarts          the job was requeued: it waits again, and keeps its request
 *     another submission     slurmctld has crashed and used the id again: it is another job
 *     other nodes            a waiting job was changed: it is submitted to the core again
 *     none of these          the same job
 *
 * Then the facts of the record are noted, and the job enters its phase (job_phase.c). A job that
 * has no record in an update has been forgotten by Slurm, and ends (controller_sweep).
 */
#include <stdlib.h>

#include "slurm/job_array.h"
#include "slurm/job_gpu_oom.h"
#include "slurm/job_phase.h"
#include "slurm/job_place.h"
#include "slurm/job_request.h"
#include "slurm/job_task.h"

/* Slurm counts the restart of a job that is requeued at once, and sets a new time of submission
 * when the job has left its node, some time later. A job with a reused id has no restarts. */
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
    job->nice = record->nice;
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
    else
        controller_follow_phase(controller, job, &note);
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

/* The job of the record; most often the one at this position of the former list. */
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
