/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's part of the ways of jobs, for several GPUs at a time, as on a server
 * (daemon/suspension/order_driver.c). A job that has come to the driver has a helper for
 * itself, and others have their turns until the driver has answered:
 *
 *     GPU 0, job 7    facts, gates, helper A: checkpoint ............ out
 *     GPU 1, job 8             facts, gates, helper B: checkpoint .... out
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/node/away_state.h"

/* ---- which GPUs ---- */

/* A record says so also of a job that is out. */
static bool is_of_job(const struct away_jobs *away, const struct away_job *job, size_t gpu)
{
    const struct node_gpu *of = &away->node->gpus[gpu];
    for (size_t i = 0; i < job->record.n_gpus && job->has_record; i++)
        if (strcmp(job->record.gpus[i].uuid, of->uuid) == 0)
            return true;
    return away_is_on(away->node, job->job, of);
}

static void claim_gpus(const struct away_jobs *away, const struct away_job *job, bool *claims)
{
    for (size_t gpu = 0; gpu < away->node->n_gpus; gpu++)
        claims[gpu] |= is_of_job(away, job, gpu);
}

bool *away_claims(const struct away_jobs *away)
{
    bool *claims = calloc(away->node->n_gpus + 1, sizeof *claims);
    for (const struct away_job *job = away->first; job && claims; job = job->next)
        if (job->group.is_at_work)
            claim_gpus(away, job, claims);
    return claims;
}

bool away_may_begin(const struct away_jobs *away, const struct away_job *job, bool *claims)
{
    bool may = true;
    for (size_t gpu = 0; gpu < away->node->n_gpus; gpu++)
        may &= !(claims[gpu] && is_of_job(away, job, gpu));
    if (!may)
        claim_gpus(away, job, claims);
    return may;
}

/* ---- to the driver and back ---- */

void away_run_group(struct away_jobs *away, enum group_goal goal, double host_bytes)
{
    struct away_job *job = away->present;
    struct group_runner *runner = &job->group.runner;
    process_group_init(&runner->group, goal);
    runner->speed = &away->speed;
    runner->teaches_nothing = job->record.is_carried;
    runner->group.count = job->record.n_processes;
    memcpy(runner->group.processes, job->record.processes, sizeof job->record.processes);
    job->group.host_bytes = host_bytes;
    away->present = NULL;
    helper_pool_start(&away->helpers, &job->group, away->client);
    away_try_soon(away);
}

bool away_take_answer(struct away_jobs *away)
{
    struct away_job *job = away->first;
    while (job && !(job->group.is_at_work && job->group.is_answered))
        job = job->next;
    if (!job)
        return false;
    helper_pool_take(&job->group);
    away->present = job;
    away->client = job->group.runner.client;
    return true;
}
