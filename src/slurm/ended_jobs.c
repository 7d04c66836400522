/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks two lists in the order of ids side by side. A job that was live before and is not live now
 * has ended, also if Slurm no longer lists it:
 *
 *     before   12 17 18      now   12 18 19      ended   17
 */
#include "slurm/ended_jobs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "slurm/controller_state.h"

static int compare_ids(const void *a, const void *b)
{
    const struct known_job *one = a, *other = b;
    return one->id < other->id ? -1 : one->id > other->id;
}

/* Slurm lists jobs mostly in this order. */
static void sort_jobs(struct known_job *list, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (list[i].id < list[i - 1].id) {
            qsort(list, n, sizeof *list, compare_ids);
            return;
        }
    }
}

static void swap_lists(struct ended_jobs *jobs)
{
    struct ended_jobs old = *jobs;
    jobs->before = old.live;
    jobs->n_before = old.n_live;
    jobs->before_capacity = old.live_capacity;
    jobs->live = old.before;
    jobs->n_live = 0;
    jobs->live_capacity = old.before_capacity;
}

static int list_live(struct ended_jobs *jobs, const struct slurm_controller *controller)
{
    const struct slurm_snapshot *snapshot = &controller->snapshot;
    for (size_t i = 0; i < snapshot->n_jobs; i++) {
        const struct slurm_job *record = &snapshot->jobs[i];
        const struct known_job job = {record->id, record->uid};
        if (cluster_is_live(controller, record) &&
            ARRAY_APPEND(jobs->live, jobs->n_live, jobs->live_capacity, job) < 0)
            return -ENOMEM;
    }
    sort_jobs(jobs->live, jobs->n_live);
    return 0;
}

static int list_ended(struct ended_jobs *jobs)
{
    jobs->n_ended = 0;
    for (size_t i = 0, k = 0; i < jobs->n_before; i++) {
        while (k < jobs->n_live && jobs->live[k].id < jobs->before[i].id)
            k++;
        bool is_live = k < jobs->n_live && jobs->live[k].id == jobs->before[i].id;
        if (!is_live &&
            ARRAY_APPEND(jobs->ended, jobs->n_ended, jobs->ended_capacity, jobs->before[i]) < 0)
            return -ENOMEM;
    }
    return 0;
}

int ended_jobs_update(struct ended_jobs *jobs, const struct slurm_controller *controller)
{
    swap_lists(jobs);
    if (list_live(jobs, controller) == 0 && list_ended(jobs) == 0)
        return 0;
    ended_jobs_fini(jobs);
    return -ENOMEM;
}

size_t ended_jobs_count(const struct ended_jobs *jobs, const struct slurm_controller *controller,
    const struct cluster_asker *asker)
{
    size_t n = 0;
    for (size_t i = 0; i < jobs->n_ended; i++)
        n += cluster_sees_jobs_of(controller, asker, jobs->ended[i].uid);
    return n;
}

json_t *ended_jobs_json(const struct ended_jobs *jobs, const struct slurm_controller *controller,
    const struct cluster_asker *asker)
{
    json_t *ids = json_array();
    for (size_t i = 0; i < jobs->n_ended; i++)
        if (cluster_sees_jobs_of(controller, asker, jobs->ended[i].uid))
            json_array_append_new(ids, json_integer(jobs->ended[i].id));
    return json_pack("{s:o}", "ids", ids);
}

void ended_jobs_fini(struct ended_jobs *jobs)
{
    free(jobs->live);
    free(jobs->before);
    free(jobs->ended);
    *jobs = (struct ended_jobs){0};
}
