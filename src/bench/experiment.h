/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of collocation experiments: which trainings run together, and how they share the GPU. Two
 * forms are read; the columns say which.
 *
 * colloc's, a line per group: `mix` ("resnet26*4", "small:400+medium:150*2": name, steps per epoch,
 * count), `sharing` ("serial", "streams", "mps" or a MIG profile such as "2g.20gb"), and optionally
 * `gpu`, `epochs`, `steps`, `batch`, `threads` (percentage of the SMs of each MPS client; one value
 * for all, or one for each task: "30/70").
 *
 * radT's (github.com/Resource-Aware-Data-systems-RAD/radt), a line per task: `Experiment`,
 * `Workload` (the lines of one workload start together), `Devices` ("0", or "0+1" for a task on two
 * GPUs), `Collocation` ("-", "MPS" or a MIG profile; one for all lines of a workload), `File`,
 * `Params`, and optionally `Status` (a workload whose lines are all FINISHED is left out) and
 * `Listeners` (only those whose figures colloc records itself).
 */
#ifndef COLLOC_BENCH_EXPERIMENT_H
#define COLLOC_BENCH_EXPERIMENT_H

#include <stddef.h>

#include "base/fault.h"

enum bench_sharing { BENCH_SERIAL, BENCH_STREAMS, BENCH_MPS, BENCH_MIG };

enum { BENCH_TASKS_MAX = 64, BENCH_THREADS_ALL = 100, BENCH_GPUS_SIZE = 64 };

struct bench_task {
    char *name;                 /* of the training, for output */
    char **argv;                /* the command, NULL-terminated; argv[0] is found on PATH */
    int threads;                /* percentage of the SMs under MPS */
    char gpus[BENCH_GPUS_SIZE]; /* indices, comma-separated; "": the group's */
};

struct bench_group {
    char *name; /* "resnet26*4 mps": unique in its experiment */
    char *mix;  /* "resnet26*4" */
    enum bench_sharing sharing;
    char profile[32];          /* of BENCH_MIG */
    char gpu[BENCH_GPUS_SIZE]; /* nvidia-smi's indices of all its GPUs, comma-separated */
    struct bench_task *tasks;
    int n_tasks;
    size_t tasks_capacity;
    int line; /* of the table, for messages */
};

struct experiment {
    struct bench_group *groups;
    size_t n_groups, capacity;
};

/* Values for what the table leaves out. */
struct experiment_defaults {
    const char *python;    /* the interpreter of the trainings */
    const char *workloads; /* the folder with colloc's train.py */
    const char *base;      /* folder of a radT table's `File`s; NULL: colloc's train.py runs the
                              same trainings */
    const char *gpu;       /* overrides the table's; NULL: does not */
    int epochs, steps;
};

/*
 * Reads a table.
 *
 * ret_experiment: ended by experiment_fini
 *
 * Returns 0, or -errno with a fault that names file and line.
 */
int experiment_read(const char *path, const struct experiment_defaults *defaults,
    struct fault *fault, struct experiment *ret_experiment);

void experiment_fini(struct experiment *experiment);

/* Returns "serial", "streams", "mps", or the MIG profile. */
const char *bench_sharing_name(const struct bench_group *group);

#endif
