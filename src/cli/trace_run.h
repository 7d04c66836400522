/* SPDX-License-Identifier: Apache-2.0 */
/* What the actions of `colloc trace` share. */
#ifndef COLLOC_CLI_TRACE_RUN_H
#define COLLOC_CLI_TRACE_RUN_H

#include "cli/command.h"

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
    TRACE_WHERE,
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
    const char *name; /* of the file that is read */
};

/* Run an action. Return 0; -errno with a fault; or the program's exit status after having printed
 * what went wrong. Those that Python programs do return only with a fault. */
int trace_export(const struct trace_run *run, struct fault *fault);
int trace_import(const struct trace_run *run, struct fault *fault);
int trace_synth(const struct trace_run *run, struct fault *fault);
int trace_info(const struct trace_run *run, struct fault *fault);

/* Returns the value of an option, by its number in trace_options. */
const struct option_value *trace_value(const struct trace_run *run, int option);

#endif
