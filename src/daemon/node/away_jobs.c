/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which job is next on its way, and what is reported. away_facts.c and away_steps.c have the ways
 * themselves, away_driver.c the driver's part of them, away_list.c the jobs. A failure is reported
 * until the controller no longer orders the job out.
 */
#include "daemon/node/away_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "base/units.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/kernel_module.h"
#include "daemon/node/away_state.h"

static const size_t FILE_MAX = MIB;

/* ---- which is next ---- */

static bool is_wanted(const struct away_jobs *away, uint32_t job)
{
    if (uv_now(away->node->parts.loop) >= away->lease_until_ms)
        return false;
    for (size_t i = 0; i < away->n_wanted; i++)
        if (away->wanted[i] == job)
            return true;
    return false;
}

static bool has_processes(const struct away_job *job)
{
    for (size_t i = 0; i < job->record.n_processes; i++)
        if (cuda_process_is(job->record.processes[i].pid, job->record.processes[i].born))
            return true;
    return false;
}

/* Has Slurm, or a user, stopped one of its processes? */
static bool is_stopped(const struct away_job *job)
{
    struct process_stat stat;
    for (size_t i = 0; i < job->record.n_processes; i++)
        if (process_read_stat(job->record.processes[i].pid, &stat) == 0 &&
            (stat.state == 'T' || stat.state == 't'))
            return true;
    return false;
}

/* What the job still has on the GPU: contexts, by the last poll. */
static double kept_bytes(const struct away_job *job, const struct node_gpu *gpu)
{
    double bytes = 0;
    for (size_t i = 0; i < gpu->n_processes; i++)
        for (size_t k = 0; k < job->record.n_processes; k++)
            if (process_id_is(node_process_id(&gpu->processes[i]),
                    group_process_id(&job->record.processes[k])))
                bytes += reading_or(gpu->processes[i].memory_bytes, 0);
    return bytes;
}

/* Is what left the GPUs free there, as far as is known? */
static bool is_room(const struct away_jobs *away, const struct away_job *job)
{
    const struct node *node = away->node;
    struct reading bytes = suspension_record_bytes(&job->record);
    for (size_t i = 0; i < node->n_gpus; i++) {
        const struct node_gpu *gpu = &node->gpus[i];
        double free_bytes = gpu->memory_total_bytes.value - gpu->memory_used_bytes.value;
        bool is_known = bytes.valid && gpu->memory_total_bytes.valid &&
                        gpu->memory_used_bytes.valid;
        for (size_t k = 0; k < job->record.n_gpus; k++)
            if (strcmp(job->record.gpus[k].uuid, gpu->uuid) == 0 && is_known &&
                free_bytes < bytes.value - kept_bytes(job, gpu))
                return false;
    }
    return true;
}

/* Returns whether it is on its way now. `claims`: GPUs that others wait for, or have */
static bool try_job(struct away_jobs *away, struct away_job *job, bool *claims)
{
    if (job->group.is_at_work)
        return false;
    bool is_out = job->where == NODE_JOB_OUT;
    bool is_ordered = is_wanted(away, job->job);
    if (job->is_lost && !away_find_lost(away, job))
        return false;
    if (is_out && !has_processes(job)) {
        log_info("job %u has ended while it was out", job->job);
        away_forget(away, job);
        return false;
    }
    if (!is_out && (!is_ordered || job->said.failure)) {
        if (!is_ordered)
            away_forget(away, job);
        return false;
    }
    if (job->retry_ms > uv_now(away->node->parts.loop))
        return false;
    bool stays_out = is_out &&
                     ((is_ordered && !job->must_return) || is_stopped(job) || !is_room(away, job));
    if (stays_out || !away_may_begin(away, job, claims))
        return false;
    if (is_out)
        away_begin(away, job, NODE_JOB_COMING, away_begin_coming);
    else
        away_begin(away, job, NODE_JOB_GOING, away_gather_facts);
    return true;
}

static void begin_next(struct away_jobs *away)
{
    bool *claims = away_claims(away);
    for (struct away_job *job = away->first, *next; job && claims && !away->present; job = next) {
        next = job->next;
        try_job(away, job, claims);
    }
    free(claims);
}

static void try_jobs(struct away_jobs *away)
{
    while (!away->present && away_take_answer(away))
        away_take_group(away);
    if (!away->present && helper_pool_find(&away->helpers))
        begin_next(away);
}

static void on_answer(void *context)
{
    away_try_soon(context);
}

/* ---- orders and polls ---- */

void away_jobs_order(struct node *node, const uint32_t *jobs, size_t n)
{
    struct away_jobs *away = node->away;
    if (!away || !away->is_taking)
        return;
    away->n_wanted = n < NODE_JOBS_MAX ? n : NODE_JOBS_MAX;
    if (n)
        memcpy(away->wanted, jobs, away->n_wanted * sizeof *jobs);
    away->lease_until_ms = uv_now(node->parts.loop) + AWAY_LEASE_MS;
    for (size_t i = 0; i < away->n_wanted; i++)
        if (!away_find(away, jobs[i]))
            away_add(away, jobs[i]);
    try_jobs(away);
}

void away_jobs_poll(struct node *node)
{
    if (node->away && !node->away->is_closed)
        try_jobs(node->away);
}

/* One whose page has not come to this agent yet may be a rank. */
static bool has_ranks(const struct node *node, const struct away_job *job)
{
    const struct suspension_record *record = &job->record;
    bool may_be = job->has_record && record->are_clients && record->n_processes > 1;
    for (size_t i = 0; i < record->n_processes && may_be; i++) {
        const struct preload_page *page = job_waits_page(
            node, job->job, group_process_id(&record->processes[i]));
        if (!page || page_is_in_communicator(page))
            return true;
    }
    return false;
}

size_t away_jobs_report(const struct node *node, struct node_job *jobs, size_t n, size_t max)
{
    for (const struct away_job *job = node->away ? node->away->first : NULL; job; job = job->next) {
        struct node_job *entry = node_job_entry(jobs, &n, max, job->job);
        struct reading bytes = suspension_record_bytes(&job->record);
        if (!entry)
            continue;
        entry->where = job->where;
        entry->failure = job->said.failure;
        memcpy(entry->why, job->said.why, sizeof entry->why);
        entry->took_us = job->said.took_us;
        entry->held_bytes = job->has_record ? (int64_t)reading_or(bytes, 0) : 0;
        entry->kept_bytes = job->has_record ? job->said.kept_bytes : 0;
        entry->has_ranks = has_ranks(node, job);
    }
    return n;
}

/* ---- life ---- */

static void load_module(struct away_jobs *away)
{
    char *data;
    size_t size;
    if (file_read(KERNEL_MODULE_VERSION_FILE, FILE_MAX, NULL, &data, &size) < 0)
        return;
    away->may_hang_host = kernel_module_may_hang((struct span){data, size}) &&
                          !away->node->parts.config->suspend_any_driver;
    free(data);
}

void away_jobs_open(struct node *node)
{
    const struct config *config = node->parts.config;
    struct away_jobs *away = calloc(1, sizeof *away);
    if (!away)
        return;
    away->node = node;
    away->helpers = (struct helper_pool){.loop = node->parts.loop,
        .program = config->checkpoint,
        .on_answer = on_answer,
        .context = away};
    if (!helper_pool_open(&away->helpers)) {
        free(away);
        return;
    }
    away->is_taking = config->core.can_suspend && job_waits_socket(node);
    away->speed = copy_speed_default();
    away->try_jobs = try_jobs;
    uv_timer_init(node->parts.loop, &away->timer);
    away->timer.data = away;
    node->away = away;
    load_module(away);
    away_load_records(away);
}

void away_jobs_close(struct node *node)
{
    struct away_jobs *away = node->away;
    if (!away || away->is_closed)
        return;
    away->is_closed = true;
    helper_pool_close(&away->helpers);
    uv_close((uv_handle_t *)&away->timer, NULL);
}

void away_jobs_destroy(struct node *node)
{
    struct away_job *job = node->away ? node->away->first : NULL;
    while (job) {
        struct away_job *next = job->next;
        free(job);
        job = next;
    }
    free(node->away);
}
