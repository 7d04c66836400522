/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The users' shares of the host memory for copies of jobs that are out (core/copy_share.h). Whose a
 * job is, is known by its steps; jobs of which none is known are taken for those of one user.
 */
#include <stdlib.h>

#include "base/array.h"
#include "core/copy_share.h"
#include "daemon/node/away_jobs.h"
#include "daemon/node/away_state.h"

/* No user has it. */
static const uint32_t UNKNOWN_UID = UINT32_MAX;

struct user_list {
    struct copy_user *users;
    size_t n, capacity;
    bool is_short; /* memory was out */
};

static uint32_t uid_of(const struct node *node, uint32_t job)
{
    const struct node_step *step = node_step_of_job(node, job);
    return step ? step->uid : UNKNOWN_UID;
}

static void add_user(struct user_list *list, uint32_t uid, double away, double running)
{
    size_t i = 0;
    while (i < list->n && list->users[i].uid != uid)
        i++;
    if (i == list->n &&
        ARRAY_APPEND(list->users, list->n, list->capacity, (struct copy_user){.uid = uid}) < 0) {
        list->is_short = true;
        return;
    }
    list->users[i].away += away;
    list->users[i].running += running;
}

/* What jobs have on GPUs that are not out. */
static void add_running(struct user_list *list, const struct node *node)
{
    for (size_t i = 0; i < node->n_gpus; i++)
        for (size_t k = 0; k < node->gpus[i].n_processes; k++) {
            const struct node_process *process = &node->gpus[i].processes[k];
            if (process->job && !away_jobs_has(node, process->job))
                add_user(list, uid_of(node, process->job), 0, reading_or(process->memory_bytes, 0));
        }
}

void away_take_share(struct away_jobs *away)
{
    const struct node *node = away->node;
    struct user_list list = {0};
    for (const struct away_job *job = away->first; job; job = job->next)
        if (job != away->present)
            add_user(&list, uid_of(node, job->job), (double)away_out_bytes(job), 0);
    add_running(&list, node);
    const struct copy_share of = copy_share_of(
        (double)away_jobs_max_bytes(node), list.users, list.n, uid_of(node, away->present->job));
    free(list.users);
    double left = list.is_short ? 0 : copy_share_left(&of);
    away->facts.suspended_bytes = (int64_t)of.taken;
    away->facts.suspended_max_bytes = (int64_t)of.max;
    away->facts.kept_bytes = (int64_t)(of.max - of.taken - left);
}
