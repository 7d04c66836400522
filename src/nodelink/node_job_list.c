/* SPDX-License-Identifier: Apache-2.0 */
/* The list of an agent's jobs while it is made: several parts of the agent have something to say of
 * the same job. */
#include "nodelink/node_job.h"

struct node_job *node_job_entry(struct node_job *jobs, size_t *n, size_t max, uint64_t job)
{
    for (size_t i = 0; i < *n; i++)
        if (jobs[i].job == job)
            return &jobs[i];
    if (*n == max || job == 0 || job > UINT32_MAX)
        return NULL;
    jobs[*n] = (struct node_job){.job = (uint32_t)job};
    return &jobs[(*n)++];
}
