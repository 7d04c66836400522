/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the task of a catalogue that represents a job of a log. Of the job, the log gives only its
 * GPUs and its length. */
#ifndef COLLOC_TRACE_MAPPING_H
#define COLLOC_TRACE_MAPPING_H

#include "sim/catalogue.h"
#include "trace/job_list.h"
#include "trace/seeded_random.h"

/* Tasks whose ratio to the job's length is up to 5 % above that of the nearest task count as equal.
 * Chosen: so that the jobs of one length do not all become the same task. */
#define MAPPING_TIE 1.05

struct mapping {
    const struct sim_task **tasks; /* sorted by GPUs, then by length */
    size_t n;
    struct seeded_random random;
};

/*
 * catalogue: one task at least; borrowed.
 *
 * Returns 0, or -ENOMEM; mapping_fini must follow 0.
 */
int mapping_init(struct mapping *mapping, const struct catalogue *catalogue, uint64_t seed);
void mapping_fini(struct mapping *mapping);

/* Returns one of the tasks with the nearest length, among those with as many GPUs as the job, or
 * with the nearest number of GPUs. */
const struct sim_task *mapping_nearest(struct mapping *mapping, const struct log_job *job);

/* Returns any task with that number of GPUs, or with the nearest number of GPUs. */
const struct sim_task *mapping_any(struct mapping *mapping, int gpus);

#endif
