/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows only the first jobs of the queue to the core. The core's queue is in the order of Slurm's
 * priority, which Slurm computes: fair share, age, QOS.
 *
 * The core orders its queue by the ids of tasks, so a job gets its task's id when its place in the
 * queue is known: of all waiting jobs, the WINDOW_JOBS_MAX of the highest priority are in the core,
 * with rising ids. When the order changes, the tasks from the first difference on are removed from
 * the core and submitted again with new ids.
 *
 *     before    17(1) 12(2) 30(3)          job 30 has priority 5, and job 31 comes with 7
 *     after     17(1) 12(2) 31(4) 30(5)    30 has left as task 3 and is task 5 now
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/node_spread.h"
#include "slurm/job_task.h"

static bool is_before(const struct candidate *a, const struct candidate *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->base != b->base ? a->base < b->base : a->index < b->index;
}

static int compare_candidates(const void *a, const void *b)
{
    return is_before(a, b) ? -1 : is_before(b, a);
}

static void swap_candidates(struct candidate *a, struct candidate *b)
{
    struct candidate one = *a;
    *a = *b;
    *b = one;
}

/* Brings the `wanted` first of the order to the front, in any order (quickselect). */
static void select_first(struct candidate *jobs, size_t n, size_t wanted)
{
    size_t low = 0, high = n;
    while (high - low > 1 && wanted > low && wanted < high) {
        size_t edge = low;
        swap_candidates(&jobs[low + (high - low) / 2], &jobs[high - 1]);
        for (size_t i = low; i < high - 1; i++)
            if (is_before(&jobs[i], &jobs[high - 1]))
                swap_candidates(&jobs[i], &jobs[edge++]);
        swap_candidates(&jobs[edge], &jobs[high - 1]);
        if (edge < wanted)
            low = edge + 1;
        else
            high = edge;
    }
}

static bool is_queued(const struct slurm_controller *controller, const struct tracked_job *job)
{
    const struct task *task = core_task(controller->core, job->task);
    return task && task->state == TASK_QUEUED;
}

static bool is_candidate(const struct slurm_controller *controller, const struct tracked_job *job)
{
    return job->phase == JOB_WAITING && job->record && job->is_eligible && !job->is_away &&
           !job->awaits_requeue && job->request_state != REQUEST_REFUSED &&
           (!job->task || is_queued(controller, job));
}

static const char no_such_node[] =
    "no node has the GPUs, GPU memory, CPUs, memory and features that it asks for";

static const char too_few_nodes[] =
    "too few nodes have the same GPUs, and the CPUs, memory and features that it asks for";

/* Why no node would take the job, as its user sees it; NULL: a node that is up can run it. One that
 * no node takes would stop all jobs behind it. */
static const char *find_node_hindrance(
    const struct slurm_controller *controller, const struct tracked_job *job)
{
    const struct node_table *nodes = &controller->nodes;
    const char *why = no_such_node;
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        const struct cluster_node *node = nodes->nodes[i];
        bool can = false;
        for (int k = 0; k < GRES_INDEX_MAX && !can && node->n_gpus >= job->request.gpus; k++)
            can = node->gpus[k] >= 0 && controller_can_ever_run(controller, job, node->gpus[k]);
        if (can && !node->is_down && !node->is_drained)
            return NULL;
        if (can)
            why = "its nodes are down or drained";
    }
    return why;
}

/* Of which GPUs may a job over several nodes have some? */
struct spread {
    const struct slurm_controller *controller;
    const struct tracked_job *job;
    bool up_only;
};

static bool may_be_on(const void *context, int gpu)
{
    const struct spread *spread = context;
    const struct node_table *nodes = &spread->controller->nodes;
    const struct cluster_node *node = nodes->nodes[nodes->gpus[gpu].node];
    const struct need *need = &spread->job->request.need;
    const struct gpu_identity *id = &core_view(spread->controller->core)->gpus[gpu].id;
    return controller_can_ever_run(spread->controller, spread->job, gpu) &&
           (need->kind != NEED_DECLARED || need->bytes <= id->mem_total_bytes) &&
           (!spread->up_only || (!node->is_down && !node->is_drained));
}

static int count_names(const char *list)
{
    struct span rest = span_of_optional(list), name;
    int n = 0;
    while (node_list_next(&rest, &name))
        n++;
    return n;
}

/* find_node_hindrance for a job over several nodes. */
static const char *find_spread_hindrance(
    struct slurm_controller *controller, const struct tracked_job *job)
{
    const struct task_request *request = &job->request;
    const struct cluster_view *view = core_view(controller->core);
    struct spread spread = {controller, job, true};
    if (request->nodes > JOB_NODES_MAX)
        return "it asks for more than 64 nodes";
    if (request->gpus % request->nodes)
        return "its number of GPUs is no multiple of its number of nodes: ask by --gres=gpu:N";
    if (job->rules[0] && count_names(job->rules[0]) != request->nodes)
        return "it asks for some of its nodes by name: name all of them, or none";
    if (request->gpus > view->n_gpus)
        return too_few_nodes;
    if (ARRAY_RESERVE(
            controller->found_gpus, controller->found_capacity, (size_t)request->gpus + 1) < 0)
        return no_such_node;
    if (node_spread_find(view, request, may_be_on, &spread, controller->found_gpus))
        return NULL;
    spread.up_only = false;
    return node_spread_find(view, request, may_be_on, &spread, controller->found_gpus)
               ? "its nodes are down or drained"
               : too_few_nodes;
}

/* ---- licences ---- */

/* Is it in the core in that phase, with licences that count before those of the candidates? */
static bool wants_licences(
    const struct slurm_controller *controller, const struct tracked_job *job, enum job_phase phase)
{
    return job->phase == phase && job->task && job->record && job->record->licences &&
           !is_candidate(controller, job);
}

/* First the licences of all jobs that have GPUs and have not started, which Slurm starts in any
 * case; then those of jobs that are to be run again before others. */
static void charge_licences(struct slurm_controller *controller)
{
    struct licence_table *licences = &controller->licences;
    struct licence_shortage shortage;
    for (size_t i = 0; i < controller->n_all; i++)
        if (wants_licences(controller, controller->all[i], JOB_PLACED))
            licence_table_charge(licences, controller->all[i]->record->licences);
    for (size_t i = 0; i < controller->n_all; i++) {
        struct tracked_job *job = controller->all[i];
        if (wants_licences(controller, job, JOB_WAITING))
            job->lacks_licences = licence_table_take(licences, job->record->licences, &shortage);
    }
}

/* As a user sees it in the comment of the job. */
static void print_shortage(
    enum licence_answer answer, const struct licence_shortage *shortage, char *ret_why, size_t size)
{
    int name_size = (int)shortage->name.size;
    if (answer == LICENCES_NEVER)
        snprintf(ret_why, size,
            "the cluster has %" PRId64 " licence%s of %.*s, the job asks for %" PRId64,
            shortage->total, shortage->total == 1 ? "" : "s", name_size, shortage->name.at,
            shortage->wanted);
    else
        snprintf(ret_why, size, "waits for licences: %.*s", name_size, shortage->name.at);
}

/* Takes the licences of a job that may enter. Writes why it has to wait for them. */
static bool has_licences(
    struct slurm_controller *controller, struct tracked_job *job, char *ret_why, size_t size)
{
    struct licence_shortage shortage;
    enum licence_answer answer = job->record->licences ? licence_table_take(&controller->licences,
                                                             job->record->licences, &shortage)
                                                       : LICENCES_TAKEN;
    job->lacks_licences = answer != LICENCES_TAKEN;
    if (job->lacks_licences)
        print_shortage(answer, &shortage, ret_why, size);
    return !job->lacks_licences;
}

/* Returns the number of jobs that wait for a place in the window; none of them is in order yet. */
static size_t collect_candidates(struct slurm_controller *controller)
{
    const struct slurm_snapshot *snapshot = &controller->snapshot;
    size_t n = 0;
    if (licence_table_begin(&controller->licences, snapshot->licences, snapshot->n_licences) < 0)
        controller->is_broken = true;
    for (size_t i = 0; i < controller->n_all; i++) {
        struct tracked_job *job = controller->all[i];
        if (is_candidate(controller, job))
            controller->candidates[n++] = (struct candidate){
                job->priority, job->base, job->index, job};
    }
    if (snapshot->n_licences > 0)
        charge_licences(controller);
    controller->n_candidates = 0;
    return n;
}

/* Puts the next of the `n` candidates in order, behind those that are. */
static void order_next(struct slurm_controller *controller, size_t n)
{
    struct candidate *next = controller->candidates + controller->n_candidates;
    size_t left = n - controller->n_candidates;
    size_t wanted = left < WINDOW_JOBS_MAX ? left : WINDOW_JOBS_MAX;
    select_first(next, left, wanted);
    qsort(next, wanted, sizeof *next, compare_candidates);
    controller->n_candidates += wanted;
}

/* Keeps of the window what still waits in the core. */
static void shorten_window(struct slurm_controller *controller)
{
    size_t n = 0;
    for (size_t i = 0; i < controller->n_window; i++)
        if (is_queued(controller, controller->window[i]))
            controller->window[n++] = controller->window[i];
    controller->n_window = n;
}

/* Why the job cannot be placed at all, as its user sees it in the comment; NULL: it can. */
static void set_hindrance(struct tracked_job *job, const char *why)
{
    if (job->refusal && why && strcmp(job->refusal, why) == 0)
        return;
    free(job->refusal);
    job->refusal = why ? strdup(why) : NULL;
}

static bool may_enter(struct slurm_controller *controller, struct tracked_job *job)
{
    const char *why;
    char licences[SLURM_TEXT_MAX];
    if (job->request_state != REQUEST_KNOWN)
        return job->task;
    if (node_spread_is_wanted(&job->request))
        why = find_spread_hindrance(controller, job);
    else if (core_check_request(controller->core, &job->request, NULL) < 0)
        why = no_such_node;
    else
        why = find_node_hindrance(controller, job);
    if (!why && !has_licences(controller, job, licences, sizeof licences))
        why = licences;
    set_hindrance(job, why);
    return !why;
}

static void shrink_window(struct slurm_controller *controller, size_t n)
{
    for (; controller->n_window > n; controller->n_window--)
        controller_drop_task(controller, controller->window[controller->n_window - 1]);
}

/* Makes the job that of place `n`, behind which all is new when it was another. */
static void put_into_window(struct slurm_controller *controller, size_t n, struct tracked_job *job)
{
    if (n < controller->n_window && controller->window[n] == job)
        return;
    shrink_window(controller, n);
    controller->window[controller->n_window++] = job;
    controller_submit_task(controller, job);
}

/* Jobs that can never be placed take no places, however many there are; jobs whose script is not
 * read yet do. */
void controller_order_window(struct slurm_controller *controller)
{
    size_t n = 0, places = 0, n_waiting = collect_candidates(controller);
    shorten_window(controller);
    if (ARRAY_RESERVE(controller->window, controller->window_capacity, WINDOW_JOBS_MAX) < 0) {
        controller->is_broken = true;
        return;
    }
    for (size_t i = 0; i < n_waiting && places < WINDOW_JOBS_MAX; i++) {
        if (i == controller->n_candidates)
            order_next(controller, n_waiting);
        struct tracked_job *job = controller->candidates[i].job;
        bool enters = may_enter(controller, job);
        if (enters)
            put_into_window(controller, n++, job);
        places += enters || job->request_state != REQUEST_KNOWN;
    }
    shrink_window(controller, n);
}
