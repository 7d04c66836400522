/* SPDX-License-Identifier: Apache-2.0 */
/* One run of `colloc trace`: what its actions share. */
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
    TRACE_KEEP_PARTIAL,
    TRACE_LIKE,
    TRACE_DAYS,
    TRACE_SEED,
    TRACE_TASKS,
    TRACE_TASKS_OUT,
    TRACE_OUTPUT,
    TRACE_OPTIONS
};

extern const struct option_spec trace_options[TRACE_OPTIONS];

/* One run. */
struct trace_run {
    const struct invocation *invocation;
    const char *name;       /* of what was read */
    struct cluster_log log; /* of info and synth, its jobs alone */
    struct catalogue catalogue;
};

/* The three actions: 0 or -errno with a fault. */
int trace_import(struct trace_run *run, struct fault *fault);
int trace_synth(struct trace_run *run, struct fault *fault);
int trace_info(struct trace_run *run, struct fault *fault);

/* ---- what they share; each that takes a fault returns 0 or -errno with it ---- */

const struct option_value *trace_value(const struct trace_run *run, int option);
bool trace_wants_json(const struct trace_run *run);

/* An option's number within [min, max]; `otherwise` when it is not said. */
int trace_number(const struct trace_run *run, int option, double min, double max, double otherwise,
    struct fault *fault, double *ret_value);

/* Of --gpus: "4", or what `simulate --gpus` takes; 0 when nothing is said. */
int trace_gpus(const struct trace_run *run, struct fault *fault, int *ret_gpus);

int trace_catalogue(struct trace_run *run, struct fault *fault);

/* The log of --from, with --keep-partial what there is of it. */
int trace_read_log(struct trace_run *run, struct fault *fault);

/* The jobs as tasks of the catalogue, or as tasks of their own, to where --output and --tasks-out
 * say. */
int trace_write(struct trace_run *run, struct fault *fault);

#endif
