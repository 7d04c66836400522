/* SPDX-License-Identifier: Apache-2.0 */
/* What the tasks are that traces name. docs/simulate.md lists the columns that a catalogue may
 * have. */
#ifndef COLLOC_SIM_CATALOGUE_H
#define COLLOC_SIM_CATALOGUE_H

#include "base/fault.h"
#include "core/task.h"
#include "sim/gpu_model.h"

struct sim_task {
    char *name;
    int gpus;
    double solo_s;        /* of an attempt on GPUs of its own */
    int64_t memory_bytes; /* what it really takes, on each GPU */
    struct need need;     /* what the scheduler is told */
    struct demand demand; /* its power is that of the whole GPU; NAN where it is not said: see
                             demand_complete */
};

struct catalogue {
    struct sim_task *tasks; /* by name */
    int n;
    int n_smact_assumed; /* tasks whose SMACT nobody says */
};

struct catalogue_settings {
    /* "none"; "declared", which is the memory it really takes; or NAME for a column
     * NAME_mb_reported or NAME_mib. */
    const char *estimator;
    double smact; /* of tasks whose SMACT neither the catalogue nor data/traces/tasks.txt says */
};

/* Reads the file, or data/traces/tasks.txt (built in) when `path` is NULL. 0 or -errno with a
 * fault. Ended by _fini. */
int catalogue_read(const char *path, const struct catalogue_settings *settings, struct fault *fault,
    struct catalogue *ret_catalogue);
void catalogue_fini(struct catalogue *catalogue);

/* NULL when there is none. */
const struct sim_task *catalogue_find(const struct catalogue *catalogue, const char *name);

#endif
