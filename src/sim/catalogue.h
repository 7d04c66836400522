/* SPDX-License-Identifier: Apache-2.0 */
/* A catalogue describes the tasks that traces name. docs/simulate.md lists its columns. */
#ifndef COLLOC_SIM_CATALOGUE_H
#define COLLOC_SIM_CATALOGUE_H

#include "base/fault.h"
#include "core/task.h"
#include "sim/gpu_model.h"
#include "sim/request_rate.h"

/* Of a service: a task without an end, to which requests come. */
struct sim_service {
    struct request_rate rate;
    double request_s; /* how long a request takes alone on its GPUs, if no other is before it */
    int64_t p99_us;   /* its latency target; 0: none */
};

struct sim_task {
    char *name;
    int gpus;
    struct host_resources host;        /* that it needs of the server; 0: not counted */
    char gpu_kind[TASK_GPU_KIND_SIZE]; /* kinds of GPUs that it runs on; "": any */
    double solo_s;                     /* how long an attempt takes alone on its GPUs; of a service,
                                          for how long it is kept; INFINITY: until the last training
                                          has ended */
    struct sim_service *service;       /* owned; NULL: a training */
    double epochs;        /* its steps, as reports of a metric count them; 0: not known */
    int64_t memory_bytes; /* the memory that it takes on each GPU */
    struct need need;     /* the memory requirement that the scheduler knows */
    bool exclusive;       /* it has its GPUs alone */
    struct demand demand; /* power_w is that of the whole GPU; NAN where the catalogue has no figure
                             (demand_complete); of a service, while it answers a request */
};

struct catalogue {
    struct sim_task *tasks; /* sorted by name */
    size_t n, capacity;
    int n_smact_assumed; /* tasks without a known SMACT */
};

struct catalogue_settings {
    /* Where the scheduler's memory requirements come from: "none"; "declared" (what the task really
     * takes); or NAME for a column NAME_mb_reported or NAME_mib. */
    const char *estimator;
    double smact; /* of tasks whose SMACT neither the catalogue nor data/traces/tasks.txt has */
};

/*
 * Reads a catalogue.
 *
 * path: of the file; NULL: the built-in data/traces/tasks.txt.
 *
 * Returns 0, or -errno with a fault; catalogue_fini must follow in both cases.
 */
int catalogue_read(const char *path, const struct catalogue_settings *settings, struct fault *fault,
    struct catalogue *ret_catalogue);
void catalogue_fini(struct catalogue *catalogue);

/* Returns the task of the name, which belongs to the catalogue, or NULL. */
const struct sim_task *catalogue_find(const struct catalogue *catalogue, const char *name);

#endif
