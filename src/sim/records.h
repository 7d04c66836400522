/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CSV files of a run: a row for each task that ended, and a row for each change of a GPU.
 * docs/simulate.md lists the columns.
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
    } * last; /* the last row of each GPU */
    int64_t now_us;
};

/*
 * Writes the head, and how each GPU begins.
 *
 * out, gpus: borrowed until timeline_fini.
 *
 * Returns 0 or -ENOMEM; timeline_fini must follow in both cases.
 */
int timeline_init(struct timeline *timeline, FILE *out, const struct simulated_gpus *gpus);
void timeline_fini(struct timeline *timeline);

/* Writes the changes of the time before, if `now_us` is later. To be called before anything changes
 * at `now_us`, and with TIME_NEVER at the end. */
void timeline_advance(struct timeline *timeline, int64_t now_us);

/* Writes the head of the tasks' table, and a row of it. `name`: of the task in the catalogue. */
void task_rows_begin(FILE *out);
void task_rows_add(FILE *out, const struct task *ended, const char *name);

#endif
