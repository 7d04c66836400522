/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs that are out, on their way, or ordered out: a list, and the record of each on disk,
 * STATE/out/JOB. A record is written before anything is changed, so an agent that finds one takes
 * the job for out (away_jobs.h).
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/node/away_jobs.h"
#include "daemon/node/away_state.h"

static const size_t FILE_MAX = MIB;

/* ---- the list ---- */

struct away_job *away_find(const struct away_jobs *away, uint32_t number)
{
    struct away_job *job = away->first;
    while (job && job->job != number)
        job = job->next;
    return job;
}

struct away_job *away_add(struct away_jobs *away, uint32_t number)
{
    struct away_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->job = number;
    LIST_PREPEND(&away->first, job);
    return job;
}

/* ---- its processes, by the last poll ---- */

bool away_is_process(const struct node *node, const struct node_process *process, uint32_t job)
{
    if (process->job != job)
        return false;
    const struct node_step *step = node_step_of_job(node, job);
    return step ? node_process_is_of(process, job, step->uid) : !process->is_claimed;
}

bool away_is_on(const struct node *node, uint32_t job, const struct node_gpu *gpu)
{
    for (size_t i = 0; i < gpu->n_processes; i++)
        if (away_is_process(node, &gpu->processes[i], job))
            return true;
    return false;
}

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

/* What a write left that a kill has ended: the folder has nothing but records. */
static void remove_leftover(const struct away_jobs *away, const char *name)
{
    char path[1024];
    if (*name == '.')
        return;
    snprintf(path, sizeof path, "%s/out/%.255s", away->node->parts.config->state_dir, name);
    unlink(path);
}

/* Its record is damaged: away_lost.c makes it again. */
static void add_lost(struct away_jobs *away, uint32_t number)
{
    struct away_job *job = away_add(away, number);
    if (!job)
        return;
    job->has_record = job->must_return = job->is_lost = true;
    job->where = NODE_JOB_OUT;
    snprintf(job->said.why, sizeof job->said.why,
        "the record of its way off its GPUs is damaged: it comes back by what its processes say");
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
    if (r == 0) {
        r = suspension_record_read((struct span){data, size}, &record);
        free(data);
    }
    if (r < 0) {
        log_error("%s: %s: job %u comes back by what its processes say", path,
            r == -EINVAL ? "damaged" : strerror(-r), (uint32_t)number);
        add_lost(away, (uint32_t)number);
        return;
    }
    struct away_job *job = away_add(away, (uint32_t)number);
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

void away_load_records(struct away_jobs *away)
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
    away->loaded_ms = uv_now(away->node->parts.loop);
    away->lease_until_ms = away->loaded_ms + AWAY_LEASE_MS;
}

void away_forget(struct away_jobs *away, struct away_job *job)
{
    if (job->has_record)
        away_remove_record(away, job);
    LIST_UNLINK(job);
    free(job);
}

/* ---- for the node's other files ---- */

bool away_jobs_has(const struct node *node, uint32_t number)
{
    const struct away_job *job = node->away ? away_find(node->away, number) : NULL;
    return job && job->where != NODE_JOB_HERE;
}

bool away_jobs_hold(const struct node *node, uint32_t number, struct process_id id)
{
    const struct away_job *job = node->away ? away_find(node->away, number) : NULL;
    for (size_t i = 0; job && job->has_record && i < job->record.n_processes; i++)
        if (process_id_is(group_process_id(&job->record.processes[i]), id))
            return true;
    return job && job->is_lost;
}

bool away_jobs_are_taken(const struct node *node)
{
    return node->away && node->away->is_taking;
}

int64_t away_out_bytes(const struct away_job *job)
{
    int64_t sum = 0;
    for (size_t i = 0; job->has_record && i < job->record.n_processes; i++)
        for (size_t k = 0; k < job->record.processes[i].n_memory; k++)
            sum += job->record.processes[i].memory[k].bytes;
    return sum;
}

int64_t away_jobs_out_bytes(const struct node *node)
{
    int64_t sum = 0;
    for (const struct away_job *job = node->away ? node->away->first : NULL; job; job = job->next)
        sum += away_out_bytes(job);
    return sum;
}

int64_t away_jobs_max_bytes(const struct node *node)
{
    return config_copies_max(node->parts.config);
}
