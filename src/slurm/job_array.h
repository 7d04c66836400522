/* SPDX-License-Identifier: Apache-2.0 */
/* Which waiting tasks of an array may be placed, by its list of indices: "0-9:3,12%2". */
#ifndef COLLOC_SLURM_JOB_ARRAY_H
#define COLLOC_SLURM_JOB_ARRAY_H

#include "slurm/controller_state.h"

/* A place in a list of indices. Start with job_array_indices(). */
struct job_array_indices {
    const char *rest;
    int64_t next, last, step; /* of the present range; next > last: it is done */
};

/* Begins to read a list, which must stay. */
static inline struct job_array_indices job_array_indices(const char *list)
{
    return (struct job_array_indices){.rest = list, .last = -1};
}

/* Returns true with the next index; false at the end, and at the first range that is none or that
 * "..." cuts. */
bool job_array_next(struct job_array_indices *indices, uint32_t *ret_index);

/*
 * How many more tasks of the array may be placed.
 *
 * record: of its tasks that are not split off; "%2" behind its indices allows two at a time
 * base:   the array's id
 *
 * Returns the number, 0 or less when there are enough; WINDOW_JOBS_MAX without a limit.
 */
int64_t controller_array_left(
    struct slurm_controller *controller, const struct slurm_job *record, uint32_t base);

#endif
