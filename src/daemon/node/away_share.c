/* SPDX-License-Identifier: Apache-2.0 */
/* The users' shares of the host memory for copies of jobs that are out (core/copy_share.h). Whose a
 * job is, is known by its steps. */
#include "core/copy_share.h"
#include "daemon/node/away_jobs.h"
#include "daemon/node/away_state.h"

static bool is_of(const struct node *node, uint32_t job, uid_t uid)
{
    const struct node_step *step = node_step_of_job(node, job);
    return step && step->uid == uid;
}

static double out_bytes_of(const struct away_jobs *away, uid_t uid)
{
    double sum = 0;
    for (const struct away_job *job = away->first; job; job = job->next)
        if (job != away->present && is_of(away->node, job->job, uid))
            sum += (double)away_out_bytes(job);
    return sum;
}

/* What its jobs have on GPUs that are not out. */
static double running_bytes_of(const struct node *node, uid_t uid)
{
    double sum = 0;
    for (size_t i = 0; i < node->n_gpus; i++)
        for (size_t k = 0; k < node->gpus[i].n_processes; k++) {
            const struct node_process *process = &node->gpus[i].processes[k];
            if (process->job && is_of(node, process->job, uid) &&
                !away_jobs_has(node, process->job))
                sum += reading_or(process->memory_bytes, 0);
        }
    return sum;
}

static bool is_first_of_user(const struct node *node, const struct node_step *of)
{
    const struct node_step *step = node->steps;
    while (step->uid != of->uid)
        step = step->next;
    return step == of;
}

void away_take_share(struct away_jobs *away)
{
    const struct node *node = away->node;
    struct copy_share of = {.max = (double)away_jobs_max_bytes(node)};
    int n_users = 0;
    for (const struct away_job *job = away->first; job; job = job->next)
        of.taken += job != away->present ? (double)away_out_bytes(job) : 0;
    for (const struct node_step *step = node->steps; step; step = step->next)
        n_users += is_first_of_user(node, step) &&
                   (out_bytes_of(away, step->uid) > 0 || running_bytes_of(node, step->uid) > 0);
    of.share = n_users > 0 ? of.max / n_users : of.max;
    for (const struct node_step *step = node->steps; step; step = step->next) {
        if (!is_first_of_user(node, step))
            continue;
        double out = out_bytes_of(away, step->uid);
        if (is_of(node, away->present->job, step->uid))
            of.own = out;
        else
            of.kept += copy_share_claim(of.share, out, running_bytes_of(node, step->uid));
    }
    away->facts.suspended_bytes = (int64_t)of.taken;
    away->facts.suspended_max_bytes = (int64_t)of.max;
    away->facts.kept_bytes = (int64_t)(of.max - of.taken - copy_share_left(&of));
}
