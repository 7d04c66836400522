/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One update: Slurm's records become events of the core (job_follow.c), the jobs of the highest
 * priorities its queue (job_window.c), and after one step of the core the difference between what
 * it decided and what Slurm shows becomes changes (job_changes.c). So a change that was lost, or
 * undone by hand, is seen at the next update, and a controller that was killed finds its way back
 * by the same comparison.
 */
#include "slurm/slurm_controller.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "slurm/job_task.h"

/* Chosen: the controller polls each 5 s, and GPUs without an agent are sampled by it. */
#define SAMPLE_VALID_US (15 * SECOND_US)

struct slurm_controller *slurm_controller_create(const struct slurm_controller_options *options)
{
    struct slurm_controller *controller = calloc(1, sizeof *controller);
    if (!controller)
        return NULL;
    controller->options = *options;
    struct core_settings *settings = &controller->options.settings;
    settings->order = ORDER_FIFO; /* of Slurm's priorities: job_window.c */
    settings->usage_half_life_us = 0;
    settings->can_pause = false;
    settings->preempt &= settings->can_suspend;
    settings->stays_on_gpus = settings->carries_mps = true; /* a pin of Slurm binds them */
    settings->expires_elsewhere = true; /* by slurmctld, which may allow some minutes more */
    settings->conditions.sample_valid_us = SAMPLE_VALID_US;
    controller->core = core_create(settings);
    controller->nodes.mem_usual_bytes = options->gpu_memory_bytes;
    controller->next_task = 1;
    if (!controller->core) {
        free(controller);
        return NULL;
    }
    const struct node_check check = {controller_check_node, controller};
    core_set_node_check(controller->core, &check);
    return controller;
}

static void tracked_job_free(struct tracked_job *job)
{
    free(job->refusal);
    free(job->rooms);
    free(job->node_list);
    for (size_t i = 0; i < ARRAY_SIZE(job->rules); i++)
        free(job->rules[i]);
    free(job);
}

void slurm_controller_destroy(struct slurm_controller *controller)
{
    if (!controller)
        return;
    for (size_t i = 0; i < controller->n_all; i++)
        tracked_job_free(controller->all[i]);
    free(controller->all);
    id_map_fini(&controller->jobs);
    id_map_fini(&controller->by_task);
    id_map_fini(&controller->by_id);
    id_map_fini(&controller->array_active);
    id_map_fini(&controller->causes);
    id_map_fini(&controller->ids);
    node_table_fini(&controller->nodes);
    core_destroy(controller->core);
    free(controller->window);
    free(controller->hints);
    free(controller->candidates);
    free(controller->changes);
    free(controller->broken_dependents);
    free(controller->found_gpus);
    licence_table_fini(&controller->licences);
    free(controller);
}

/* ---- nodes ---- */

/* The agents' samples stay: otherwise each agent that is new would stop all placement for the
 * second until all others have reported again. Nodes without one are sampled in each update. */
static void feed_gpus(struct slurm_controller *controller)
{
    const struct node_table *nodes = &controller->nodes;
    struct gpu_identity *list = calloc(nodes->n_gpus + 1, sizeof *list);
    if (!list) {
        controller->is_broken = true;
        return;
    }
    struct event event = {.kind = EVENT_GPUS};
    event.gpus.n = node_table_list_gpus(nodes, list);
    event.gpus.list = list;
    event.gpus.keeps_samples = true;
    controller_apply(controller, event);
    controller->is_gpu_changed = false;
    free(list);
}

static void follow_nodes(struct slurm_controller *controller, const struct slurm_snapshot *snapshot)
{
    bool is_changed;
    if (node_table_update(&controller->nodes, snapshot->nodes, snapshot->n_nodes, &is_changed) < 0)
        controller->is_broken = true;
    else if (is_changed || controller->is_gpu_changed)
        feed_gpus(controller);
    node_table_clear_others(&controller->nodes);
}

/* ---- jobs ---- */

/* Removes what Slurm has no more; the last job of the list takes the place. */
static void remove_forgotten(struct slurm_controller *controller)
{
    for (size_t i = 0; i < controller->n_all;) {
        struct tracked_job *job = controller->all[i];
        if (job->record || job->task) {
            i++;
            continue;
        }
        controller->all[i] = controller->all[--controller->n_all];
        id_map_remove(&controller->jobs, (uint64_t)job->base << 32 | job->index);
        tracked_job_free(job);
    }
}

static void step_core(struct slurm_controller *controller)
{
    const struct event tick = {.kind = EVENT_TICK, .time_us = controller->now_us};
    if (core_step(controller->core, &tick) < 0)
        controller->is_broken = true;
}

int slurm_controller_update(struct slurm_controller *controller,
    const struct slurm_snapshot *snapshot, int64_t now_us, int64_t wall_s,
    struct slurm_change **ret_changes, size_t *ret_n)
{
    controller->now_us = now_us > controller->now_us ? now_us : controller->now_us;
    controller->wall_s = wall_s;
    controller->counts_memory = snapshot->counts_memory;
    controller->can_change_gres = snapshot->can_change_gres;
    controller->snapshot = *snapshot;
    controller->update++;
    controller->has_news = false;
    controller->asked = NULL;
    follow_nodes(controller, snapshot);
    controller->is_active_counted = false;
    controller->n_seen = 0;
    controller->n_broken_dependents = 0;
    if (ARRAY_RESERVE(controller->hints, controller->hints_capacity, snapshot->n_jobs + 1) < 0)
        controller->is_broken = true;
    for (size_t i = 0; i < snapshot->n_jobs && !controller->is_broken; i++)
        controller_follow(controller, &snapshot->jobs[i], i);
    controller->n_hints = snapshot->n_jobs;
    if (ARRAY_RESERVE(
            controller->candidates, controller->candidates_capacity, controller->n_all + 1) < 0)
        controller->is_broken = true;
    if (!controller->is_broken) {
        controller_sweep(controller);
        controller_order_window(controller);
        controller_watch_overlaps(controller);
        controller_sample_silent_gpus(controller);
        controller_note_idle(controller);
        step_core(controller);
        controller_list_changes(controller);
        if (controller->n_seen < controller->n_all)
            remove_forgotten(controller);
    }
    *ret_changes = controller->changes;
    *ret_n = controller->n_changes;
    return controller->is_broken ? -ENOMEM : 0;
}

/* ---- answers to callers ---- */

/* Chosen: after this many refusals slurmctld will refuse again, and the job must not hold GPUs
 * meanwhile. */
enum { REFUSALS_MAX = 3 };

static void refuse_job(
    struct slurm_controller *controller, struct tracked_job *job, const char *reason)
{
    char text[SLURM_TEXT_MAX];
    snprintf(text, sizeof text, "%.200s: submit it anew", reason);
    free(job->refusal);
    job->refusal = strdup(text);
    job->request_state = REQUEST_REFUSED;
    controller_drop_task(controller, job);
    job->phase = JOB_WAITING;
    job->shards = 0;
    controller->has_news = true;
}

/* Slurm shows the change at the next update, or it is requested again. */
void slurm_controller_changed(struct slurm_controller *controller,
    const struct slurm_change *change, const char *reason, int64_t now_us)
{
    struct tracked_job *job = controller_find_job(controller, change->job, change->index);
    if (change->kind == SLURM_DEPEND && change->result == -EAGAIN)
        controller_retry_renewals(controller);
    if (!job)
        return;
    if (change->result == 0) {
        job->failures = 0;
        job->retry_us = 0;
        return;
    }
    /* Chosen: 1 s after the first failure, 2, 4 ... up to a minute after later ones. */
    int doublings = job->failures < 6 ? job->failures : 6;
    job->failures++;
    job->retry_us = now_us + (SECOND_US << doublings);
    if (change->kind == SLURM_PIN && change->result == -EINVAL && job->failures >= REFUSALS_MAX)
        refuse_job(controller, job, reason);
}

/* Returns the number of the request. */
static uint64_t set_key(
    struct slurm_controller *controller, const struct tracked_job *job, struct slurm_job_key *key)
{
    *key = (struct slurm_job_key){.id = job->slurm_id,
        .base = job->base,
        .index = job->index,
        .uid = job->uid,
        .gid = job->gid,
        .work_dir = job->record ? job->record->work_dir : NULL,
        .attempt = job->attempt,
        .request = ++controller->n_requests};
    return key->request;
}

/* Does the job still wait for the answer to this request for its script? */
static bool awaits_script(const struct tracked_job *job, const struct slurm_job_key *key)
{
    return job && job->request_state == REQUEST_READING && job->script_request == key->request;
}

/* Only jobs that may start soon: candidates are in the order of priority. */
bool slurm_controller_wanted_script(
    struct slurm_controller *controller, struct slurm_job_key *ret_key)
{
    for (size_t i = 0; i < controller->n_candidates; i++) {
        struct tracked_job *job = controller->candidates[i].job;
        if (job->request_state != REQUEST_UNKNOWN)
            continue;
        job->request_state = REQUEST_READING;
        job->script_request = set_key(controller, job, ret_key);
        return true;
    }
    return false;
}

void slurm_controller_set_request(struct slurm_controller *controller,
    const struct slurm_job_key *key, const struct task_request *request, const char *refusal)
{
    struct tracked_job *job = controller_find_job(controller, key->base, key->index);
    if (!awaits_script(job, key))
        return;
    job->request_state = refusal ? REQUEST_REFUSED : REQUEST_KNOWN;
    free(job->refusal);
    job->refusal = refusal ? strdup(refusal) : NULL;
    int gpus = job->request.gpus, nodes = job->request.nodes;
    if (!refusal)
        job->request = *request;
    job->request.gpus = gpus;
    job->request.nodes = nodes;
    controller->has_news = true;
}

bool slurm_controller_wanted_log(struct slurm_controller *controller, struct slurm_job_key *ret_key)
{
    for (size_t i = 0; i < controller->n_all && controller->n_logs_wanted > 0; i++) {
        struct tracked_job *job = controller->all[i];
        if (!job->is_log_wanted)
            continue;
        job->is_log_wanted = false;
        controller->n_logs_wanted--;
        job->log_request = set_key(controller, job, ret_key);
        return true;
    }
    return false;
}

void slurm_controller_want_again(
    struct slurm_controller *controller, const struct slurm_job_key *key)
{
    struct tracked_job *job = controller_find_job(controller, key->base, key->index);
    if (awaits_script(job, key))
        job->request_state = REQUEST_UNKNOWN;
    if (!job || job->phase != JOB_EXAMINED || job->log_request != key->request ||
        job->is_log_wanted)
        return;
    job->is_log_wanted = true;
    controller->n_logs_wanted++;
}

/* Chosen: after this many failures the next one is likely, as with a summary that needs too much
 * memory; if the kernel killed a helper by chance, the next one succeeds. */
enum { TRIES_MAX = 3 };

bool slurm_controller_try_again(
    struct slurm_controller *controller, const struct slurm_job_key *key)
{
    struct tracked_job *job = controller_find_job(controller, key->base, key->index);
    if (awaits_script(job, key) && ++job->failed_tries >= TRIES_MAX)
        return false;
    slurm_controller_want_again(controller, key);
    return true;
}

bool slurm_controller_has_news(const struct slurm_controller *controller)
{
    return controller->has_news;
}

bool slurm_controller_has_node(const struct slurm_controller *controller, const char *node)
{
    int number = node_table_find(&controller->nodes, span_of(node));
    return number >= 0 && controller->nodes.nodes[number]->is_listed;
}

struct cluster_node *slurm_controller_node(
    const struct slurm_controller *controller, const char *name)
{
    int number = node_table_find(&controller->nodes, span_of(name));
    return number >= 0 ? controller->nodes.nodes[number] : NULL;
}

struct cluster_node *slurm_controller_node_at(
    const struct slurm_controller *controller, size_t number)
{
    return number < controller->nodes.n_nodes ? controller->nodes.nodes[number] : NULL;
}

const struct core *slurm_controller_core(const struct slurm_controller *controller)
{
    return controller->core;
}
