/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run tells as it goes, besides its result, as CSV: a row per task that ended, and a row
 * whenever a GPU changes. docs/simulate.md lists the columns.
 */
#ifndef COLLOC_SIM_RECORDS_H
#define COLLOC_SIM_RECORDS_H

#include <stdio.h>

#include "core/task.h"
#include "sim/simulated_gpus.h"

struct timeline {
    FILE *out;
    const struct simulated_gpus *gpus;
    struct gpu_moment {
        int64_t mem_used_bytes;
        double smact, power_w;
        int tasks;
    } * last; /* by GPU: what its last row says */
    int64_t now_us;
};

/* Writes the head and how every GPU begins. Out and farm are borrowed. 0 or -ENOMEM. Ended by
 * timeline_fini either way.
 */
int timeline_init(struct timeline *timeline, FILE *out, const struct simulated_gpus *gpus);
void timeline_fini(struct timeline *timeline);

/* To be told before anything changes at `now_us`, and after all: writes how the GPUs were from the
 * moment before on. */
void timeline_advance(struct timeline *timeline, int64_t now_us);

void task_rows_begin(FILE *out);
void task_rows_add(FILE *out, const struct task *ended, const char *name);

#endif
