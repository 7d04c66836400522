/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs are on the heap, one by one, so that what points to their texts stays right. */
#include "fake_slurm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "slurm/node_table.h"

void fake_slurm_init(struct fake_slurm *fake, int nodes, int gpus)
{
    *fake = (struct fake_slurm){.next_id = 1, .now_s = 1000, .can_change_gres = true};
    fake->nodes = calloc((size_t)nodes, sizeof *fake->nodes);
    fake->held = calloc((size_t)nodes, sizeof *fake->held);
    fake->n_nodes = (size_t)nodes;
    for (int i = 0; i < nodes; i++) {
        char name[16], gres[512] = "";
        size_t used = 0;
        snprintf(name, sizeof name, "n%d", i);
        for (int k = 0; k < gpus; k++)
            used += (size_t)snprintf(gres + used, sizeof gres - used,
                "%sgpu:i%d:1(S:0),shard:i%d:80", k ? "," : "", k, k);
        fake->nodes[i] = (struct slurm_node){
            .name = strdup(name), .gres = strdup(gres), .cpus = 64, .memory_bytes = 64000 * MIB};
    }
}

void fake_slurm_fini(struct fake_slurm *fake)
{
    for (size_t i = 0; i < fake->n_nodes; i++) {
        free((void *)(uintptr_t)fake->nodes[i].name);
        free((void *)(uintptr_t)fake->nodes[i].gres);
    }
    for (size_t i = 0; i < fake->n_jobs; i++)
        free(fake->jobs[i]);
    free(fake->jobs);
    free(fake->nodes);
    free(fake->held);
    free(fake->listed);
}

struct fake_job *fake_slurm_submit(struct fake_slurm *fake, uint32_t priority)
{
    struct fake_job *job = calloc(1, sizeof *job);
    snprintf(job->partition, sizeof job->partition, "intake");
    job->job = (struct slurm_job){.id = fake->next_id++,
        .array_index = SLURM_NO_INDEX,
        .uid = 1000,
        .state = SLURM_STATE_PENDING,
        .may_requeue = true,
        .submit_s = fake->now_s,
        .begin_s = fake->now_s,
        .priority = priority,
        .cpus = 1,
        .nodes = 1,
        .memory_bytes = 100 * MIB,
        .partition = job->partition,
        .required_nodes = NULL,
        .gres = job->gres,
        .admin_comment = job->note,
        .comment = job->comment};
    if (ARRAY_APPEND(fake->jobs, fake->n_jobs, fake->capacity, job) < 0)
        abort();
    return job;
}

struct slurm_snapshot fake_slurm_list(struct fake_slurm *fake)
{
    size_t n = 0;
    if (ARRAY_RESERVE(fake->listed, fake->listed_capacity, fake->n_jobs + 1) < 0)
        abort();
    for (size_t i = 0; i < fake->n_jobs; i++)
        if (!fake->jobs[i]->is_gone)
            fake->listed[n++] = fake->jobs[i]->job;
    return (struct slurm_snapshot){.jobs = fake->listed,
        .hides_jobs = fake->hides_jobs,
        .n_jobs = n,
        .nodes = fake->nodes,
        .n_nodes = fake->n_nodes,
        .licences = fake->licences,
        .n_licences = fake->n_licences,
        .counts_memory = fake->counts_memory,
        .can_change_gres = fake->can_change_gres};
}

/* A task of an array that is changed is split off its record. */
static struct fake_job *split_task(struct fake_slurm *fake, struct fake_job *array, uint32_t index)
{
    struct fake_job *task = fake_slurm_submit(fake, array->job.priority);
    task->job.array_id = array->job.id;
    task->job.array_index = index;
    task->job.submit_s = array->job.submit_s;
    return task;
}

static struct fake_job *find_job(struct fake_slurm *fake, uint32_t base, uint32_t index)
{
    struct fake_job *array = NULL;
    for (size_t i = 0; i < fake->n_jobs; i++) {
        struct fake_job *job = fake->jobs[i];
        if (job->is_gone)
            continue;
        if (index == SLURM_NO_INDEX ? job->job.id == base
                                    : job->job.array_id == base && job->job.array_index == index)
            return job;
        if (job->job.array_indices && job->job.id == base)
            array = job;
    }
    return array ? split_task(fake, array, index) : NULL;
}

static void pin_job(struct fake_job *job, const struct slurm_change *change)
{
    snprintf(job->gres, sizeof job->gres, "%s", change->gres);
    snprintf(job->nodes, sizeof job->nodes, "%s", change->nodes);
    job->job.nodes = change->n_nodes;
    snprintf(job->partition, sizeof job->partition, "run");
    job->job.required_nodes = job->nodes;
    job->job.is_held = job->job.is_requeue_held = false;
}

int fake_slurm_change(struct fake_slurm *fake, const struct slurm_change *change)
{
    struct fake_job *job = find_job(fake, change->job, change->index);
    fake->n_changes++;
    if (fake->failing > 0) {
        fake->failing--;
        return fake->failure ? fake->failure : -EAGAIN;
    }
    if (!job)
        return -ENOENT;
    if (change->kind == SLURM_REQUEUE)
        fake_slurm_requeue(fake, job, true);
    else if (change->kind != SLURM_COMMENT && job->job.state != SLURM_STATE_PENDING)
        return -EBUSY;
    if (change->kind == SLURM_PIN)
        pin_job(job, change);
    if (change->kind == SLURM_RETURN) {
        snprintf(job->partition, sizeof job->partition, "intake");
        job->job.is_held &= !change->releases;
        job->job.is_requeue_held &= job->job.is_held;
    }
    if (change->kind == SLURM_DEPEND) {
        snprintf(job->dependency, sizeof job->dependency, "%s", change->dependency);
        job->job.dependency = job->dependency;
        job->job.begin_s = change->begin_s > fake->now_s ? change->begin_s : fake->now_s;
        job->renewals++;
    }
    if (change->begin_s)
        job->job.begin_s = change->begin_s;
    if (*change->note)
        snprintf(job->note, sizeof job->note, "%s", change->note);
    if (*change->comment)
        snprintf(job->comment, sizeof job->comment, "%s", change->comment);
    return 0;
}

/* Counts the job's shards on all its nodes, `sign` times. */
static void count_shards(struct fake_slurm *fake, const struct fake_job *job, int sign)
{
    int64_t shards[GRES_INDEX_MAX];
    struct span rest = span_of(job->nodes), name;
    gres_counts_by_index(span_of_optional(job->gres), "shard", shards);
    while (node_list_next(&rest, &name))
        for (int i = 0; i < FAKE_INDICES; i++)
            fake->held[strtol(name.at + 1, NULL, 10)][i] += sign * shards[i];
}

static bool take_shards(struct fake_slurm *fake, struct fake_job *job)
{
    bool fits = true;
    count_shards(fake, job, 1);
    for (size_t n = 0; n < fake->n_nodes; n++)
        for (int i = 0; i < FAKE_INDICES; i++)
            fits &= fake->held[n][i] <= 80;
    if (!fits)
        count_shards(fake, job, -1);
    return fits;
}

void fake_slurm_set_limit(struct fake_job *job, int64_t limit_s)
{
    const int64_t year_s = 365 * 24 * 3600;
    job->job.time_limit_s = limit_s;
    if (job->job.state == SLURM_STATE_RUNNING)
        job->job.end_s = job->job.start_s + (limit_s ? limit_s : year_s);
}

int fake_slurm_start(struct fake_slurm *fake)
{
    int n = 0;
    for (size_t i = 0; i < fake->n_jobs; i++) {
        struct fake_job *job = fake->jobs[i];
        if (job->is_gone || job->job.state != SLURM_STATE_PENDING || job->job.is_held ||
            strcmp(job->partition, "run") != 0 || job->job.begin_s > fake->now_s ||
            !take_shards(fake, job))
            continue;
        job->job.state = SLURM_STATE_RUNNING;
        job->job.node_list = job->nodes;
        job->job.start_s = fake->now_s;
        fake_slurm_set_limit(job, job->job.time_limit_s);
        job->starts++;
        n++;
    }
    return n;
}

static void free_shards(struct fake_slurm *fake, struct fake_job *job)
{
    if (job->job.state == SLURM_STATE_RUNNING)
        count_shards(fake, job, -1);
}

void fake_slurm_end(struct fake_slurm *fake, struct fake_job *job, enum slurm_state state)
{
    free_shards(fake, job);
    job->job.state = state;
    job->job.end_s = fake->now_s;
}

void fake_slurm_requeue(struct fake_slurm *fake, struct fake_job *job, bool is_held)
{
    free_shards(fake, job);
    job->job.state = SLURM_STATE_PENDING;
    job->job.is_held = job->job.is_requeue_held = is_held;
    job->job.restarts++;
    job->job.submit_s = fake->now_s;
    job->job.begin_s = fake->now_s + 120;
}
