/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running jobs that give way. The core decides as for the tasks of a server; the agents of the
 * nodes carry it out (daemon/node/away_jobs.h). No message is an order to begin
 * something: each order is the list of the jobs of a node that the core wants off their GPUs at
 * that time, and each report says where they are. The difference of the two becomes events:
 *
 *     the core wants it     the agent says     then
 *     out                   out                SUSPENDED
 *     out                   here, it failed    SUSPENSION_FAILED: it goes on
 *     back                  here               RESUMED
 *     nothing (a new        out                SUSPENDING, SUSPENDED: it comes back in its turn
 *     controller)
 *     out (the agent heard  here               RESUMING, RESUMED
 *     of none for long)
 *
 * To Slurm such a job runs: it keeps its shards, CPUs and memory there, and comes back only to its
 * GPUs. A job over several nodes is left alone (core/ask/giving_way.c), since its processes on the
 * other nodes would wait for those that left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "slurm/job_task.h"
#include "slurm/slurm_controller.h"

/* ---- reports ---- */

static void apply_to(
    struct slurm_controller *controller, const struct tracked_job *job, enum event_kind kind)
{
    controller_apply(controller, (struct event){.kind = kind, .task = job->task});
}

static void note_wait(struct slurm_controller *controller, struct tracked_job *job,
    const struct task *task, int64_t bytes)
{
    struct event event = {.kind = EVENT_MEMORY_WAIT, .task = job->task};
    bool is_known = task->run->memory_wait.bytes > 0;
    if (bytes && task->state == TASK_RUNNING && !is_known) {
        event.memory_wait.bytes = bytes;
        event.memory_wait.is_again = job->is_waiting_for_memory;
        controller_apply(controller, event);
    } else if (!bytes && is_known) {
        apply_to(controller, job, EVENT_MEMORY_WAIT_END);
    }
    job->is_waiting_for_memory = bytes > 0;
}

static void apply_suspended(struct slurm_controller *controller, const struct tracked_job *job,
    const struct slurm_job_report *report)
{
    struct event event = {.kind = EVENT_SUSPENDED, .task = job->task};
    event.yielded.bytes = report->held_bytes > 0 ? reading_of((double)report->held_bytes)
                                                 : reading_of(1);
    event.yielded.context_bytes = reading_of(
        report->kept_bytes > 0 ? (double)report->kept_bytes : 1);
    event.yielded.has_ranks = report->has_ranks;
    event.yielded.took_us = report->took_us;
    controller_apply(controller, event);
}

/* A controller that was started meanwhile does not know for which job it went. */
static void take_over_suspended(struct slurm_controller *controller, const struct tracked_job *job,
    const struct slurm_job_report *report)
{
    struct event event = {.kind = EVENT_SUSPENDING, .task = job->task};
    event.yield.reason = YIELD_TO_MEMORY;
    controller_apply(controller, event);
    apply_suspended(controller, job, report);
}

static void take_over_running(
    struct slurm_controller *controller, const struct tracked_job *job, const struct task *task)
{
    if (task->run->yield.is_unused)
        apply_to(controller, job, EVENT_WAKE);
    struct event event = {.kind = EVENT_RESUMING, .task = job->task};
    event.yield.gpus = task->run->yield.context_gpus;
    event.yield.n = task->run->yield.n_context_gpus;
    if (event.yield.n > 0)
        controller_apply(controller, event);
    apply_to(controller, job, EVENT_RESUMED);
}

static void apply_failed(
    struct slurm_controller *controller, struct tracked_job *job, bool is_for_now, const char *why)
{
    struct event event = {.kind = EVENT_SUSPENSION_FAILED, .task = job->task};
    event.suspension_failed.why = is_for_now ? SUSPENSION_NOT_NOW : SUSPENSION_REFUSED;
    controller_apply(controller, event);
    snprintf(job->why_stays, sizeof job->why_stays, "%s", why);
    log_info("job %u stays on its GPUs: %s", job->slurm_id, why);
}

static void follow_out(struct slurm_controller *controller, const struct tracked_job *job,
    const struct task *task, const struct slurm_job_report *report)
{
    if (task->state == TASK_SUSPENDING)
        apply_suspended(controller, job, report);
    else if (task->state == TASK_RUNNING)
        take_over_suspended(controller, job, report);
    else if (task->state == TASK_SUSPENDED && report->is_called && task->run->yield.is_unused)
        apply_to(controller, job, EVENT_WAKE);
}

static void follow_here(struct slurm_controller *controller, struct tracked_job *job,
    const struct task *task, const struct slurm_job_report *report)
{
    if (task->state == TASK_SUSPENDING && report->has_failed)
        apply_failed(controller, job, report->may_later, report->why);
    else if (task->state == TASK_RESUMING)
        apply_to(controller, job, EVENT_RESUMED);
    else if (task->state == TASK_SUSPENDED)
        take_over_running(controller, job, task);
    else if (task->state == TASK_RUNNING)
        job->idle_us = report->idle_us;
}

/* Without memory for it, nothing is said. */
static void note_rooms(struct tracked_job *job, const struct slurm_job_report *report)
{
    const char *rooms = report->rooms ? report->rooms : "";
    job->room_bytes = report->room_bytes;
    if (strcmp(job->rooms ? job->rooms : "", rooms) == 0)
        return;
    free(job->rooms);
    job->rooms = *rooms ? strdup(rooms) : NULL;
}

static void follow_report(struct slurm_controller *controller, struct tracked_job *job,
    const struct slurm_job_report *report)
{
    const struct task *task = core_task(controller->core, job->task);
    if (!task || job->phase != JOB_RUNNING)
        return;
    job->is_carried = report->is_carried;
    note_rooms(job, report);
    if (report->where == SLURM_JOB_OUT && report->why && *report->why)
        snprintf(job->why_stays, sizeof job->why_stays, "%s", report->why);
    if (report->where == SLURM_JOB_OUT)
        follow_out(controller, job, task, report);
    else if (report->where == SLURM_JOB_HERE)
        follow_here(controller, job, task, report);
    note_wait(controller, job, task, report->waits_bytes);
}

/* ---- the jobs of a node ---- */

/* The jobs that have, or had, GPUs of the node: each may be listed several times. */
static size_t list_tasks(const struct slurm_controller *controller, const struct cluster_node *node,
    uint64_t *ret_tasks, size_t max)
{
    size_t n = 0;
    for (int i = 0; i < GRES_INDEX_MAX; i++) {
        const struct gpu_view *gpu = node->gpus[i] >= 0
                                         ? &core_view(controller->core)->gpus[node->gpus[i]]
                                         : NULL;
        for (int k = 0; gpu && k < gpu->n_residents && n < max; k++)
            ret_tasks[n++] = gpu->residents[k].task;
        for (int k = 0; gpu && k < gpu->n_absent && n < max; k++)
            ret_tasks[n++] = gpu->absent[k].task;
    }
    return n;
}

enum { TASKS_OF_NODE_MAX = 1024 };

static bool is_first(const uint64_t *tasks, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (tasks[i] == tasks[at])
            return false;
    return true;
}

void slurm_controller_report_jobs(struct slurm_controller *controller, const char *name,
    bool suspends, const struct slurm_job_report *reports, size_t n, int64_t now_us)
{
    int number = node_table_find(&controller->nodes, span_of(name));
    uint64_t tasks[TASKS_OF_NODE_MAX];
    if (number < 0)
        return;
    struct cluster_node *node = controller->nodes.nodes[number];
    controller->now_us = now_us > controller->now_us ? now_us : controller->now_us;
    node->suspends = suspends;
    size_t n_tasks = list_tasks(controller, node, tasks, TASKS_OF_NODE_MAX);
    for (size_t i = 0; i < n_tasks; i++) {
        struct tracked_job *job = id_map_get(&controller->by_task, tasks[i]);
        struct slurm_job_report report = {.where = SLURM_JOB_HERE};
        if (!job || tracked_job_nodes(job) > 1 || !is_first(tasks, i))
            continue;
        for (size_t k = 0; k < n; k++)
            if (reports[k].job == job->slurm_id)
                report = reports[k];
        if (!suspends) {
            report.has_failed = true;
            report.why = "the agent of its node takes no job off its GPUs";
        }
        follow_report(controller, job, &report);
    }
}

size_t slurm_controller_list_away(
    struct slurm_controller *controller, const char *name, uint32_t *ret_jobs, size_t max)
{
    int number = node_table_find(&controller->nodes, span_of(name));
    uint64_t tasks[TASKS_OF_NODE_MAX];
    size_t n = 0;
    if (number < 0)
        return 0;
    size_t n_tasks = list_tasks(
        controller, controller->nodes.nodes[number], tasks, TASKS_OF_NODE_MAX);
    for (size_t i = 0; i < n_tasks && n < max; i++) {
        const struct tracked_job *job = id_map_get(&controller->by_task, tasks[i]);
        const struct task *task = core_task(controller->core, tasks[i]);
        bool is_away = task && (task->state == TASK_SUSPENDING || task->state == TASK_SUSPENDED);
        if (job && is_away && is_first(tasks, i))
            ret_jobs[n++] = job->slurm_id;
    }
    return n;
}

/* ---- in an update ---- */

void controller_note_idle(struct slurm_controller *controller)
{
    int64_t limit_us = controller->options.settings.suspend_unused_us;
    for (size_t i = 0; i < controller->n_all && limit_us > 0; i++) {
        struct tracked_job *job = controller->all[i];
        struct event event = {.kind = EVENT_IDLE, .time_us = controller->now_us, .task = job->task};
        if (!job->task || job->idle_us < limit_us)
            continue;
        event.idle_us = job->idle_us;
        job->idle_us = 0;
        if (core_step(controller->core, &event) < 0)
            controller->is_broken = true;
    }
}

const char *controller_why_stays(
    const struct slurm_controller *controller, const struct tracked_job *job)
{
    if (!controller->options.settings.can_suspend || job->phase != JOB_RUNNING)
        return "";
    return tracked_job_nodes(job) > 1 ? "never: it runs on several nodes" : job->why_stays;
}
