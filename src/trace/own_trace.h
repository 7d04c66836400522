/* SPDX-License-Identifier: Apache-2.0 */
/* Traces and catalogues of tasks in the columns of `colloc simulate` (docs/simulate.md). */
#ifndef COLLOC_TRACE_OWN_TRACE_H
#define COLLOC_TRACE_OWN_TRACE_H

#include "base/fault.h"
#include "sim/catalogue.h"
#include "trace/job.h"

/*
 * Writes the jobs' arrivals to the file ("-" is standard output). `tasks` has what each job is;
 * with `own` each job is a task of its own, "j1", "j2" and so on, which own_tasks_write describes.
 * 0 or -errno with a fault.
 */
int own_trace_write(const char *path, const struct job_list *jobs,
    const struct sim_task *const *tasks, bool own, struct fault *fault);

/* A catalogue in which each job is a task: its GPUs and length are its own, memory and activity
 * those of tasks[i]. */
int own_tasks_write(const char *path, const struct job_list *jobs,
    const struct sim_task *const *tasks, struct fault *fault);

/* Adds the jobs of a trace whose tasks are in the catalogue. 0 or -errno with a fault. */
int own_trace_read(const char *path, const struct catalogue *catalogue, struct job_list *list,
    struct fault *fault);

#endif
