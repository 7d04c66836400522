/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs of colloc's partitions have ended from one update of the controller to another. */
#ifndef COLLOC_SLURM_ENDED_JOBS_H
#define COLLOC_SLURM_ENDED_JOBS_H

#include "slurm/cluster_json.h"

struct known_job {
    uint32_t id;
    uid_t uid;
};

/* All zero at first. */
struct ended_jobs {
    struct known_job *live, *before; /* by id: at the last call, and at the one before it */
    size_t n_live, n_before, live_capacity, before_capacity;
    struct known_job *ended; /* jobs that have ended between the two */
    size_t n_ended, ended_capacity;
};

/* Compares the jobs of now with those of the last call; at the first, none has ended. Returns 0 or
 * -ENOMEM: then none is known, as before the first. */
int ended_jobs_update(struct ended_jobs *jobs, const struct slurm_controller *controller);

/* How many of the ended jobs may the user see? */
size_t ended_jobs_count(const struct ended_jobs *jobs, const struct slurm_controller *controller,
    const struct cluster_asker *asker);

/* Returns {"ids": [17, 18]}, with the ids that the user may see, for the caller to release; NULL
 * when memory is out. */
json_t *ended_jobs_json(const struct ended_jobs *jobs, const struct slurm_controller *controller,
    const struct cluster_asker *asker);

/* Releases the lists. */
void ended_jobs_fini(struct ended_jobs *jobs);

#endif
