/* SPDX-License-Identifier: Apache-2.0 */
/* What the actions of `colloc trace` share. */
#ifndef COLLOC_CLI_TRACE_RUN_H
#define COLLOC_CLI_TRACE_RUN_H

#include "cli/command.h"
#include "sim/catalogue.h"
#include "trace/cluster_log.h"

enum {
    TRACE_FROM,
    TRACE_FROM_TIME,
    TRACE_WINDOW,
    TRACE_GPUS,
    TRACE_SAMPLE,
    TRACE_JOBS,
    TRACE_ARRIVAL_SCALE,
    TRACE_PROCESSORS,
    TRACE_JOB_TABLE,
    TRACE_KEEP_PARTIAL,
    TRACE_LIKE,
    TRACE_DAYS,
    TRACE_SEED,
    TRACE_TASKS,
    TRACE_TASKS_OUT,
    TRACE_GPU_MEMORY,
    TRACE_SINCE,
    TRACE_UNTIL,
    TRACE_OUTPUT,
    TRACE_OPTIONS
};

extern const struct option_spec trace_options[TRACE_OPTIONS];

struct trace_run {
    const struct invocation *invocation;
    const char *name;       /* of the file that was read */
    struct cluster_log log; /* info and synth use only its jobs */
    struct catalogue catalogue;
};

/* Run an action. Return 0; -errno with a fault; or the program's exit status after having printed
 * what went wrong. */
int trace_export(struct trace_run *run, struct fault *fault);
int trace_import(struct trace_run *run, struct fault *fault);
int trace_synth(struct trace_run *run, struct fault *fault);
int trace_info(struct trace_run *run, struct fault *fault);

/* ---- steps of the actions; those with a fault return 0, or -errno with the fault set ---- */

/* Returns the value of an option, by its number in trace_options. */
const struct option_value *trace_value(const struct trace_run *run, int option);

/* Returns whether --json was given. */
bool trace_wants_json(const struct trace_run *run);

/* Reads an option's number, within [min, max]; `otherwise` if the option is not given. */
int trace_number(const struct trace_run *run, int option, double min, double max, double otherwise,
    struct fault *fault, double *ret_value);

/* Reads the number of GPUs of --gpus: "4", or a value of `simulate --gpus`; 0 if not given. */
int trace_gpus(const struct trace_run *run, struct fault *fault, int *ret_gpus);

/* Reads the catalogue of tasks: that of --tasks, or the built-in one. */
int trace_catalogue(struct trace_run *run, struct fault *fault);

/* Returns the format of --from, or what the file's first line shows, and prints which; or NULL.
 * Standard input is not read ahead. */
const struct cluster_log_format *trace_format(const struct trace_run *run);

/* Reads the log in this format; with --keep-partial, up to its first error. */
int trace_read_log(
    struct trace_run *run, const struct cluster_log_format *format, struct fault *fault);

/* Writes the trace to --output: each job as a task of the catalogue or, with --tasks-out, as its
 * own task, whose catalogue goes to that file. */
int trace_write(struct trace_run *run, struct fault *fault);

#endif
