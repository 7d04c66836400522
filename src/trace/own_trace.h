/* SPDX-License-Identifier: Apache-2.0 */
/* Traces and catalogues of tasks in the columns of `colloc simulate` (docs/simulate.md). */
#ifndef COLLOC_TRACE_OWN_TRACE_H
#define COLLOC_TRACE_OWN_TRACE_H

#include "base/fault.h"
#include "sim/catalogue.h"
#include "trace/job_list.h"

/*
 * Writes the arrival of each job, its task, and its user if users are known.
 *
 * path:  "-" is standard output.
 * tasks: what each job is; used if `own` is false.
 * own:   each job is a separate task, "j1", "j2" and so on, which own_tasks_write describes.
 *
 * Returns 0, or -errno with a fault.
 */
int own_trace_write(const char *path, const struct job_list *jobs,
    const struct sim_task *const *tasks, bool own, struct fault *fault);

/*
 * Writes a catalogue in which each job is a task: with its own GPUs and length, memory and activity
 * of tasks[i]. A job with shards of a GPU has that part of its memory. A job that requested another
 * part of a GPU has that part as its SM activity; the rest of its activity is unknown.
 *
 * gpu_bytes: memory of a GPU, of which shards are parts
 *
 * Returns 0, or -errno with a fault.
 */
int own_tasks_write(const char *path, const struct job_list *jobs,
    const struct sim_task *const *tasks, int64_t gpu_bytes, struct fault *fault);

/* Reads a trace, whose tasks must be in the catalogue, and adds its jobs to the list. Returns 0, or
 * -errno with a fault. */
int own_trace_read(const char *path, const struct catalogue *catalogue, struct job_list *list,
    struct fault *fault);

#endif
