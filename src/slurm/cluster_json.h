/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's jobs and GPUs, as colloc-slurm sees them, as the objects of docs/protocol.md: a job is a
 * TASK with Slurm's id, a GPU has the index "n1:2". The waiting tasks of an array are one TASK, as
 * in squeue. Members that only collocd knows are missing or null.
 *
 * Contract: with PrivateData=jobs in slurm.conf a user sees the own jobs only, as in squeue; root
 * and the user that colloc-slurm runs as see all.
 */
#ifndef COLLOC_SLURM_CLUSTER_JSON_H
#define COLLOC_SLURM_CLUSTER_JSON_H

#include <jansson.h>

#include "policy/forecast.h"
#include "slurm/slurm_controller.h"

/* The user that a request is from, and the names of users. */
struct cluster_asker {
    uid_t uid;
    const char *(*user_name)(void *context, uid_t uid); /* never NULL; valid until the next call */
    void *context;
};

struct cluster_jobs_query {
    const char *state; /* "live", "ended", "all" or a state, in capitals or not */
    const char *user;  /* NULL: all */
    const char *after; /* `next` of the page before; NULL: the first page */
};

/*
 * Makes the answer of GET /v1/tasks: a page of the jobs in colloc's partitions: running jobs first,
 * then waiting ones, by priority.
 *
 * ret_answer: for the caller to release
 *
 * Returns 0; -EINVAL: the query makes no sense; or -ENOMEM.
 */
int cluster_jobs_json(const struct slurm_controller *controller, const struct cluster_asker *asker,
    const struct cluster_jobs_query *query, json_t **ret_answer);

/*
 * Makes the answer of GET /v1/tasks/ID.
 *
 * id:         a job; or the job id of an array, whose tasks are counted
 * index:      of a task of the array; SLURM_NO_INDEX: not given
 * ret_answer: for the caller to release
 *
 * Returns 0; -ENOENT: no such job, or the user may not see it; or -ENOMEM.
 */
int cluster_job_json(const struct slurm_controller *controller, const struct cluster_asker *asker,
    uint32_t id, uint32_t index, json_t **ret_answer);

/* Returns the answer of GET /v1/gpus, for the caller to release; NULL when memory is out. */
json_t *cluster_gpus_json(
    const struct slurm_controller *controller, const struct cluster_asker *asker);

/* The forecast of the last update for which one was made. All zero: none was. */
struct cluster_starts {
    unsigned update;
    int n;
    struct forecast starts[FORECAST_TASKS_MAX];
};

/*
 * Makes the answer of GET /v1/starts: the first waiting jobs, in their order, with their expected
 * starts; then the jobs that wait for their begin moment, with that moment, the earliest first.
 *
 * wall_offset_us: wall time less the core's time
 * known:          kept by the caller from one answer to the next
 *
 * Returns the answer, for the caller to release; NULL when memory is out.
 */
json_t *cluster_starts_json(const struct slurm_controller *controller,
    const struct cluster_asker *asker, int64_t wall_offset_us, struct cluster_starts *known);

/* Does Slurm's PrivateData let the user see the jobs of others? */
bool cluster_sees_all_jobs(
    const struct slurm_controller *controller, const struct cluster_asker *asker);

/* Does it let the user see the jobs of user `uid`? */
bool cluster_sees_jobs_of(
    const struct slurm_controller *controller, const struct cluster_asker *asker, uid_t uid);

/* Does GET /v1/tasks list the job as waiting or running? */
bool cluster_is_live(const struct slurm_controller *controller, const struct slurm_job *record);

/* Counts the jobs of colloc's partitions that wait and that run. */
void cluster_count_jobs(
    const struct slurm_controller *controller, int *ret_waiting, int *ret_running);

#endif
