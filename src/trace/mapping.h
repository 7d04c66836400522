/* SPDX-License-Identifier: Apache-2.0 */
/* Which task of a catalogue stands for a job of a log, which says only its GPUs and its length. */
#ifndef COLLOC_TRACE_MAPPING_H
#define COLLOC_TRACE_MAPPING_H

#include "sim/catalogue.h"
#include "trace/job.h"
#include "trace/random.h"

/* Tasks whose length differs from the job's by up to 5 % more than the nearest one's are as near;
 * chance decides. */
#define MAPPING_TIE 1.05

struct mapping {
    const struct sim_task **tasks; /* by GPUs, then by length */
    size_t n;
    struct random random;
};

/* The catalogue (with one task at least) is borrowed. 0 or -ENOMEM. Ended by mapping_fini. */
int mapping_init(struct mapping *mapping, const struct catalogue *catalogue, uint64_t seed);
void mapping_fini(struct mapping *mapping);

/* Among the tasks of as many GPUs (or the nearest number of them that there is), the nearest by the
 * ratio of lengths.
 */
const struct sim_task *mapping_nearest(struct mapping *mapping, const struct log_job *job);

/* Any of the tasks of as many GPUs (or the nearest number). */
const struct sim_task *mapping_any(struct mapping *mapping, int gpus);

#endif
