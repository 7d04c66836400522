/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which job is next on its way, what is on disk, and what is reported; away_facts.c and
 * away_steps.c have the ways themselves. A failure is reported until the controller no longer
 * orders the job out.
 */
#include "daemon/node/away_jobs.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clamp.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "base/process.h"
#include "base/units.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/kernel_module.h"
#include "daemon/node/away_state.h"

static const size_t FILE_MAX = MIB;
enum { RETRY_MS = 2000, WAIT_MIN_MS = 2, WAIT_MAX_MS = 500, WAIT_PART = 8 }; /* chosen */

static void on_timer(uv_timer_t *timer);

/* ---- on disk ---- */

static void write_path(const struct away_jobs *away, uint32_t job, char *path, size_t size)
{
    snprintf(path, size, "%s/out/%u", away->node->parts.config->state_dir, job);
}

int away_save_record(struct away_jobs *away, struct away_job *job)
{
    char path[600], folder[600];
    write_path(away, job->job, path, sizeof path);
    snprintf(folder, sizeof folder, "%s/out", away->node->parts.config->state_dir);
    char *text = suspension_record_write(&job->record);
    int r = text ? file_make_folders(folder, 0700) : -ENOMEM;
    if (r == 0)
        r = file_write_atomic(path, text, strlen(text), 0600);
    free(text);
    job->has_record |= r == 0;
    return r;
}

void away_remove_record(struct away_jobs *away, struct away_job *job)
{
    char path[600];
    write_path(away, job->job, path, sizeof path);
    unlink(path);
    job->has_record = false;
}

static struct away_job *add_job(struct away_jobs *away, uint32_t number)
{
    struct away_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->job = number;
    LIST_PREPEND(&away->first, job);
    return job;
}

/* What a write left that a kill has ended: the folder has nothing but records. */
static void remove_leftover(const struct away_jobs *away, const char *name)
{
    char path[1024];
    if (*name == '.')
        return;
    snprintf(path, sizeof path, "%s/out/%.255s", away->node->parts.config->state_dir, name);
    unlink(path);
}

static void load_record(struct away_jobs *away, const char *name)
{
    char path[600], *data;
    size_t size;
    int64_t number;
    if (parse_int64(name, 1, UINT32_MAX, &number) < 0) {
        remove_leftover(away, name);
        return;
    }
    write_path(away, (uint32_t)number, path, sizeof path);
    struct suspension_record record;
    int r = file_read(path, FILE_MAX, NULL, &data, &size);
    if (r < 0)
        return;
    r = suspension_record_read((struct span){data, size}, &record);
    free(data);
    if (r < 0) {
        log_error("%s: damaged", path);
        return;
    }
    struct away_job *job = add_job(away, (uint32_t)number);
    if (!job)
        return;
    job->record = record;
    job->has_record = true;
    job->where = NODE_JOB_OUT;
    job->must_return = !record.is_resuming;
    if (away->n_wanted < NODE_JOBS_MAX)
        away->wanted[away->n_wanted++] = job->job; /* until the controller is heard, for a lease */
    log_info("job %u was left out by an earlier agent", job->job);
}

static void load_records(struct away_jobs *away)
{
    char folder[600];
    snprintf(folder, sizeof folder, "%s/out", away->node->parts.config->state_dir);
    DIR *stream = opendir(folder);
    if (!stream)
        return;
    struct dirent *entry;
    while ((entry = readdir(stream)))
        load_record(away, entry->d_name);
    closedir(stream);
    away->lease_until_ms = uv_now(away->node->parts.loop) + AWAY_LEASE_MS;
}

/* ---- which is next ---- */

static struct away_job *find_job(const struct away_jobs *away, uint32_t number)
{
    struct away_job *job = away->first;
    while (job && job->job != number)
        job = job->next;
    return job;
}

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
            if (gpu->processes[i].pid == job->record.processes[k].pid)
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

static void forget_job(struct away_jobs *away, struct away_job *job)
{
    if (job->has_record)
        away_remove_record(away, job);
    LIST_UNLINK(job);
    free(job);
}

static void begin_way(struct away_jobs *away, struct away_job *job, enum node_job_where where,
    void (*begin)(struct away_jobs *away))
{
    away->present = job;
    away->began_ms = away->step_ms = uv_now(away->node->parts.loop);
    job->where = where;
    begin(away);
}

/* Returns whether it is on its way now. */
static bool try_job(struct away_jobs *away, struct away_job *job)
{
    bool is_out = job->where == NODE_JOB_OUT;
    bool is_ordered = is_wanted(away, job->job);
    if (is_out && !has_processes(job)) {
        log_info("job %u has ended while it was out", job->job);
        forget_job(away, job);
        return false;
    }
    if (!is_out && (!is_ordered || job->said.failure)) {
        if (!is_ordered)
            forget_job(away, job);
        return false;
    }
    if (job->retry_ms > uv_now(away->node->parts.loop))
        return false;
    if (!is_out) {
        begin_way(away, job, NODE_JOB_GOING, away_gather_facts);
        return true;
    }
    if ((is_ordered && !job->must_return) || is_stopped(job) || !is_room(away, job))
        return false;
    begin_way(away, job, NODE_JOB_COMING, away_begin_coming);
    return true;
}

static void try_jobs(struct away_jobs *away)
{
    for (struct away_job *job = away->first, *next; job && !away->present; job = next) {
        next = job->next;
        try_job(away, job);
    }
}

void away_finish(struct away_jobs *away, enum node_job_where where)
{
    struct away_job *job = away->present;
    uint64_t now_ms = uv_now(away->node->parts.loop);
    bool is_done = where == NODE_JOB_OUT ? job->where == NODE_JOB_GOING : !job->said.failure;
    away->present = NULL;
    away->next_step = NULL;
    job->said.took_us = is_done ? (int64_t)(now_ms - away->began_ms) * MS_US : 0;
    if (is_done)
        log_info("job %u is %s, after %.2f s", job->job, where == NODE_JOB_OUT ? "out" : "back",
            (double)(now_ms - away->began_ms) / 1000);
    job->where = where;
    job->retry_ms = is_done && where == NODE_JOB_OUT ? 0 : now_ms + RETRY_MS; /* after a poll */
    if (where == NODE_JOB_HERE) {
        job->must_return = false;
        if (job->has_record)
            away_remove_record(away, job);
    }
    uv_timer_start(&away->timer, on_timer, 0, 0); /* not from here: many may be tried */
}

/* ---- waiting for processes ---- */

static void on_timer(uv_timer_t *timer)
{
    struct away_jobs *away = timer->data;
    void (*step)(struct away_jobs *) = away->next_step;
    away->next_step = NULL;
    if (away->is_closed)
        return;
    if (step)
        step(away);
    else if (!away->present)
        try_jobs(away);
}

void away_wait(struct away_jobs *away, void (*step)(struct away_jobs *away))
{
    uint64_t waited_ms = uv_now(away->node->parts.loop) - away->step_ms;
    int64_t wait_ms = clamp_int64((int64_t)(waited_ms / WAIT_PART), WAIT_MIN_MS, WAIT_MAX_MS);
    away->next_step = step;
    uv_timer_start(&away->timer, on_timer, (uint64_t)wait_ms, 0);
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
        if (!find_job(away, jobs[i]))
            add_job(away, jobs[i]);
    try_jobs(away);
}

void away_jobs_poll(struct node *node)
{
    if (node->away && !node->away->is_closed)
        try_jobs(node->away);
}

bool away_jobs_has(const struct node *node, uint32_t number)
{
    const struct away_job *job = node->away ? find_job(node->away, number) : NULL;
    return job && job->where != NODE_JOB_HERE;
}

bool away_jobs_hold(const struct node *node, uint32_t number, pid_t pid)
{
    const struct away_job *job = node->away ? find_job(node->away, number) : NULL;
    for (size_t i = 0; job && job->has_record && i < job->record.n_processes; i++)
        if (job->record.processes[i].pid == pid)
            return true;
    return false;
}

bool away_jobs_are_taken(const struct node *node)
{
    return node->away && node->away->is_taking;
}

/* One whose page has not come to this agent yet may be a rank. */
static bool has_ranks(const struct node *node, const struct away_job *job)
{
    const struct suspension_record *record = &job->record;
    bool may_be = job->has_record && record->are_clients && record->n_processes > 1;
    for (size_t i = 0; i < record->n_processes && may_be; i++) {
        const struct preload_page *page = job_waits_page(node, job->job, record->processes[i].pid);
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
    away->client = helper_client_create(node->parts.loop, config->checkpoint);
    if (!away->client) {
        free(away);
        return;
    }
    away->is_taking = config->core.can_suspend && job_waits_socket(node);
    away->speed = copy_speed_default();
    away->runner = (struct group_runner){.client = away->client,
        .speed = &away->speed,
        .on_done = away_on_group_done,
        .context = away};
    uv_timer_init(node->parts.loop, &away->timer);
    away->timer.data = away;
    node->away = away;
    load_module(away);
    load_records(away);
}

void away_jobs_close(struct node *node)
{
    struct away_jobs *away = node->away;
    if (!away || away->is_closed)
        return;
    away->is_closed = true;
    helper_client_close(away->client);
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
