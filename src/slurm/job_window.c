/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core's queue is in the order of Slurm's priority, which stays Slurm's: fair share, age, QOS.
 *
 * The core orders its queue by the ids of tasks, so a job gets its task's id when its place in the
 * queue is known: of all waiting jobs, the WINDOW_JOBS_MAX of the highest priority are in the core,
 * with rising ids. When the order changes, the tasks from the first difference on leave the core
 * and come back with new ids.
 *
 *     before    17(1) 12(2) 30(3)          job 30 has priority 5, and job 31 comes with 7
 *     after     17(1) 12(2) 31(4) 30(5)    30 has left as task 3 and is task 5 now
 */
#include <stdlib.h>
#include <string.h>

#include "slurm/controller_state.h"

static bool is_before(const struct tracked_job *a, const struct tracked_job *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->base != b->base ? a->base < b->base : a->index < b->index;
}

static int compare_jobs(const void *a, const void *b)
{
    const struct tracked_job *one = *(struct tracked_job *const *)a;
    const struct tracked_job *other = *(struct tracked_job *const *)b;
    return is_before(one, other) ? -1 : is_before(other, one);
}

static void swap_jobs(struct tracked_job **a, struct tracked_job **b)
{
    struct tracked_job *job = *a;
    *a = *b;
    *b = job;
}

/* Brings the `wanted` first of the order to the front, in any order (quickselect). */
static void select_first(struct tracked_job **jobs, size_t n, size_t wanted)
{
    size_t low = 0, high = n;
    while (high - low > 1 && wanted > low && wanted < high) {
        size_t edge = low;
        swap_jobs(&jobs[low + (high - low) / 2], &jobs[high - 1]);
        for (size_t i = low; i < high - 1; i++)
            if (is_before(jobs[i], jobs[high - 1]))
                swap_jobs(&jobs[i], &jobs[edge++]);
        swap_jobs(&jobs[edge], &jobs[high - 1]);
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
    return job->record && job->phase == JOB_WAITING && job->is_eligible && !job->is_away &&
           !job->awaits_requeue && job->request_state != REQUEST_REFUSED &&
           (!job->task || is_queued(controller, job));
}

static const char no_such_node[] =
    "no node has the GPUs, GPU memory, CPUs, memory and features that it asks for";

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

/* Returns how many jobs wait for a place in the window; none of them is in order yet. */
static size_t collect_candidates(struct slurm_controller *controller)
{
    size_t n = 0;
    for (size_t i = 0; i < controller->n_all; i++)
        if (is_candidate(controller, controller->all[i]))
            controller->candidates[n++] = controller->all[i];
    controller->n_candidates = 0;
    return n;
}

/* Puts the next of the `n` candidates in order, behind those that are. */
static void order_next(struct slurm_controller *controller, size_t n)
{
    struct tracked_job **next = controller->candidates + controller->n_candidates;
    size_t left = n - controller->n_candidates;
    size_t wanted = left < WINDOW_JOBS_MAX ? left : WINDOW_JOBS_MAX;
    select_first(next, left, wanted);
    qsort(next, wanted, sizeof *next, compare_jobs);
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
    if (job->request_state != REQUEST_KNOWN)
        return job->task;
    if (job->record->nodes > 1)
        why = "it asks for several nodes, and colloc places a job on one";
    else if (core_check_request(controller->core, &job->request, NULL) < 0)
        why = no_such_node;
    else
        why = find_node_hindrance(controller, job);
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

/* Jobs that cannot be placed at all take no places, however many they are; those whose script is
 * still to be read do. */
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
        struct tracked_job *job = controller->candidates[i];
        bool enters = may_enter(controller, job);
        if (enters)
            put_into_window(controller, n++, job);
        places += enters || job->request_state != REQUEST_KNOWN;
    }
    shrink_window(controller, n);
}
