/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes that Slurm needs, found by comparing the core with Slurm's records after each step:
 *
 *     the core has placed a job, Slurm does not show its pin       pin
 *     a job ran out of GPU memory and has failed                   requeue, held
 *     it is in the run partition without a pin that counts         return to the intake
 *     it is there already, held by the agent that requeued it      the same, released
 *     its agent has requeued it, and its note does not say so      note
 *     a pinned job has not started for STUCK_US                    return to the intake
 *     the head of the queue, or a refused job, has another reason  comment
 *     another job that waits still has an earlier reason           comment
 *     a job depends on one that failed and is run again            depend (job_dependents.c)
 *
 * A failed change is requested again later (slurm_controller_changed). A comment of the user is
 * never replaced.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "slurm/job_place.h"
#include "slurm/job_task.h"

/* Chosen: slurmctld starts a pinned job within its scheduling interval, which is seconds. */
#define STUCK_US (120 * SECOND_US)

/* Chosen: comments are for people, and each is a change that slurmctld must save. */
#define COMMENT_PERIOD_US (10 * SECOND_US)

enum { BEGIN_DELAY_S = 2 }; /* measured: slurmd refuses a job in the second in which it has ended */

static struct slurm_change *add_change(
    struct slurm_controller *controller, enum slurm_change_kind kind, const struct tracked_job *job)
{
    if (job->retry_us > controller->now_us)
        return NULL;
    struct slurm_change *change = controller_add_change(controller, kind, job->base, job->index);
    if (change)
        change->task = job->task;
    return change;
}

static void write_note(const struct slurm_controller *controller, const struct tracked_job *job,
    enum note_state state, struct slurm_change *change)
{
    struct job_note note = {.want = job->request.gpus / tracked_job_nodes(job),
        .attempt = job->attempt,
        .restart = job->restarts,
        .ooms = job->ooms,
        .state = state,
        .is_bound = job->rules[0],
        .smact_percent = -1};
    if (job->request.expect.smact.valid)
        note.smact_percent = (int)(100 * job->request.expect.smact.value + 0.5);
    if (job->node >= 0) {
        note.gpus = job->indices;
        note.shards = job->shards;
        note.nodes = span_of(controller_nodes_of(controller, job));
    }
    job_note_format(&note, change->note, sizeof change->note);
}

/* ---- comments ---- */

static bool is_own_comment(const char *comment)
{
    return !comment || !*comment || strncmp(comment, "colloc: ", 8) == 0;
}

const char *controller_explain_waiting(const struct slurm_controller *controller,
    const struct tracked_job *job, char *text, size_t size)
{
    char of_tasks[SLURM_TEXT_MAX];
    core_explain(controller->core, job->task, controller->now_us, of_tasks, sizeof of_tasks);
    controller_name_jobs(controller, of_tasks, text, size);
    return text;
}

static void explain_placed(const struct slurm_controller *controller, const struct tracked_job *job,
    char *out, size_t size)
{
    char list[3 * GRES_INDEX_MAX] = "", memory[32];
    size_t used = 0;
    for (int i = 0; i < GRES_INDEX_MAX; i++)
        if (job->indices >> i & 1)
            used += (size_t)snprintf(list + used, sizeof list - used, used ? ",%d" : "%d", i);
    const struct need *need = &job->request.need;
    snprintf(out, size, "colloc: node%s %.100s, GPU %s%s, %" PRId64 " shards; GPU memory %s%s",
        job->node_list ? "s" : "", controller_nodes_of(controller, job), list,
        job->node_list ? " of each" : "", job->shards,
        need->kind >= NEED_ESTIMATED ? format_size(need->bytes, memory, sizeof memory)
                                     : "not known",
        job->ooms > 0 ? "; alone, after it ran out of it" : "");
}

/* Did a user or an administrator hold it? */
static bool is_held_by_hand(const struct tracked_job *job)
{
    return job->record->is_held && !job->is_held_by_agent && !job->is_away;
}

/* Does Slurm show a comment of colloc on a job that has none to show now? It is of earlier:
 * it could not be placed then, was the head of the queue, or ran. */
static bool has_old_comment(const struct tracked_job *job)
{
    const char *comment = job->record->comment;
    bool is_in_line = job->is_eligible && job->request_state == REQUEST_KNOWN;
    return job->phase == JOB_WAITING && (is_in_line || is_held_by_hand(job)) && comment &&
           *comment && is_own_comment(comment);
}

static bool is_head(const struct slurm_controller *controller, const struct tracked_job *job)
{
    return controller->n_window > 0 && controller->window[0] == job;
}

/* Only the first waiting job and recovering jobs have a specific reason. The others have no
 * comment, unless an earlier one has to be replaced. */
static void add_comment(struct slurm_controller *controller, struct tracked_job *job)
{
    char text[SLURM_TEXT_MAX], reason[SLURM_TEXT_MAX];
    const struct task *task = job->task ? core_task(controller->core, job->task) : NULL;
    bool waits = task && (task->state == TASK_RECOVERING ||
                             (task->state == TASK_QUEUED && is_head(controller, job)));
    if ((!waits && !job->refusal && !has_old_comment(job)) ||
        job->record->state != SLURM_STATE_PENDING ||
        controller->now_us - job->commented_us < COMMENT_PERIOD_US ||
        !is_own_comment(job->record->comment))
        return;
    job->commented_us = controller->now_us;
    if (waits)
        snprintf(text, sizeof text, "colloc: waits: %.200s",
            controller_explain_waiting(controller, job, reason, sizeof reason));
    else
        snprintf(text, sizeof text, "colloc: %.240s",
            job->refusal           ? job->refusal
            : is_held_by_hand(job) ? "held: it is not placed until `scontrol release`"
                                   : "waits for those before it");
    if (job->record->comment && strcmp(job->record->comment, text) == 0)
        return;
    struct slurm_change *change = add_change(controller, SLURM_COMMENT, job);
    if (change)
        snprintf(change->comment, sizeof change->comment, "%s", text);
}

/* ---- pins ---- */

/* The core has just placed the job: which GPUs, and how many shards of each. */
static void take_placement(
    struct slurm_controller *controller, struct tracked_job *job, const struct task *task)
{
    controller_set_place(controller, job, task->gpus, task->n_gpus);
    job->attempt++;
    int64_t least = INT64_MAX;
    for (int i = 0; i < task->n_gpus; i++) {
        int gpu = task->gpus[i];
        int64_t left = controller_shards_left(controller, gpu, job);
        int64_t wanted = controller_shards_wanted(controller, job, gpu);
        if (task->exclusive)
            wanted = controller->nodes.gpus[gpu].shards;
        wanted = wanted < left ? wanted : left;
        least = wanted < least ? wanted : least;
    }
    job->shards = least > 0 ? least : 1;
    job->phase = JOB_PLACED;
    job->placed_s = controller->wall_s;
    job->is_pinned = false;
}

static void add_pin(struct slurm_controller *controller, struct tracked_job *job)
{
    const struct slurm_job *record = job->record;
    struct slurm_change *change = add_change(controller, SLURM_PIN, job);
    if (!change)
        return;
    change->moves = record->partition &&
                    strcmp(record->partition, controller->options.run_partition) != 0;
    change->begin_s = job->restarts > 0 ? controller->wall_s + BEGIN_DELAY_S : 0;
    change->n_nodes = tracked_job_nodes(job);
    snprintf(change->nodes, sizeof change->nodes, "%s", controller_nodes_of(controller, job));
    gres_format_shards(job->indices, job->shards, change->gres, sizeof change->gres);
    write_note(controller, job, NOTE_PINNED, change);
    if (is_own_comment(record->comment))
        explain_placed(controller, job, change->comment, sizeof change->comment);
}

static void add_requeue(struct slurm_controller *controller, struct tracked_job *job)
{
    struct slurm_change *change = add_change(controller, SLURM_REQUEUE, job);
    if (change)
        write_note(controller, job, NOTE_RECOVERING, change);
}

/* A job that has ended in another way meanwhile stays so: its user has cancelled it, or slurmctld
 * had forgotten that its agent requeued it. */
static void list_requeue(struct slurm_controller *controller, struct tracked_job *job)
{
    if (job->record->state == SLURM_STATE_FAILED) {
        add_requeue(controller, job);
    } else if (slurm_state_is_end(job->record->state)) {
        job->awaits_requeue = false;
        controller_drop_task(controller, job);
        job->phase = JOB_DONE;
    }
}

/* The agent has requeued it, and its note is of the former run: slurmctld may crash and forget its
 * next start, and a new controller would not know why it is held. */
static bool lacks_crash_note(const struct tracked_job *job)
{
    struct job_note note;
    return job->is_away && job->record->is_requeue_held && job->crashed == job->restarts + 1 &&
           job_note_parse(job->record->admin_comment, &note) && note.state == NOTE_PINNED;
}

static void add_crash_note(struct slurm_controller *controller, struct tracked_job *job)
{
    struct slurm_change *change = add_change(controller, SLURM_COMMENT, job);
    if (change)
        write_note(controller, job, NOTE_RECOVERING, change);
}

static void add_return(struct slurm_controller *controller, struct tracked_job *job)
{
    struct slurm_change *change = add_change(controller, SLURM_RETURN, job);
    if (!change)
        return;
    write_note(controller, job, NOTE_WAITING, change);
    change->begin_s = controller->wall_s + BEGIN_DELAY_S;
    change->releases = job->is_held_by_agent;
}

/* Something that the controller does not count keeps it from starting. A job that ran out of
 * GPU memory goes back like others: its note keeps that, and it gets all shards of a GPU again. */
static bool is_stuck(const struct slurm_controller *controller, const struct tracked_job *job)
{
    return job->phase == JOB_PLACED && job->is_pinned &&
           controller->now_us - job->pinned_us > STUCK_US;
}

static void follow_task(struct slurm_controller *controller, struct tracked_job *job)
{
    const struct task *task = core_task(controller->core, job->task);
    if (!task || task_state_is_done(task->state)) {
        job->awaits_requeue = false;
        job->phase = job->phase == JOB_EXAMINED ? job->phase : JOB_DONE;
        controller_forget_task(controller, job);
    } else if (task->state == TASK_STARTING && job->phase == JOB_WAITING) {
        take_placement(controller, job, task);
    }
}

static void list_changes_of(struct slurm_controller *controller, struct tracked_job *job)
{
    if (job->task)
        follow_task(controller, job);
    bool is_pending = job->record && job->record->state == SLURM_STATE_PENDING;
    if (is_pending && is_stuck(controller, job)) {
        controller_drop_task(controller, job);
        job->phase = JOB_WAITING;
        job->shards = 0;
        job->is_away = true;
    }
    if (!job->record)
        return;
    if (job->awaits_requeue) {
        list_requeue(controller, job);
    } else if (is_pending && job->phase == JOB_PLACED && !job->is_pinned) {
        add_pin(controller, job);
    } else if (is_pending && !job->task && job->phase == JOB_WAITING &&
               (job->is_away || (job->is_held_by_agent && job->record->is_held))) {
        add_return(controller, job);
    } else if (is_pending && lacks_crash_note(job)) {
        add_crash_note(controller, job);
    }
    add_comment(controller, job);
}

void controller_list_changes(struct slurm_controller *controller)
{
    controller->n_changes = 0;
    for (size_t i = 0; i < controller->n_all; i++)
        if (controller->all[i]->phase != JOB_RUNNING && /* nothing of it changes but by Slurm */
            !tracked_job_is_quiet(controller->all[i]))
            list_changes_of(controller, controller->all[i]);
    controller_list_dependents(controller);
}
