/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of collocation experiments: which trainings run together, and how they share the GPU. Two
 * forms are read, told apart by their columns.
 *
 * Ours, a line per group: `mix` ("resnet26*4", "small:400+medium:150*2": name, steps of an epoch,
 * how many), `sharing`
 * ("serial", "streams", "mps" or a MIG profile such as "2g.20gb"), and optionally `gpu`, `epochs`,
 * `steps`, `batch`, `threads` (per cent of the SMs for every client of MPS, or one value for each
 * task: "30/70").
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
    char *name;                 /* of the training, for people */
    char **words;               /* the command, NULL-terminated; the first is a program on PATH */
    int threads;                /* per cent of the SMs under MPS */
    char gpus[BENCH_GPUS_SIZE]; /* indices, comma-separated; "": the group's */
};

struct bench_group {
    char *name; /* "resnet26*4 mps": one of a kind in its experiment, without commas */
    char *mix;  /* "resnet26*4" */
    enum bench_sharing sharing;
    char profile[32];          /* of BENCH_MIG */
    char gpu[BENCH_GPUS_SIZE]; /* indices of all its GPUs as people know them, comma-separated */
    struct bench_task *tasks;
    int n_tasks;
    int line; /* in the table */
};

struct experiment {
    struct bench_group *groups;
    size_t n_groups;
};

/* What the table does not say. */
struct experiment_defaults {
    const char *python;    /* the interpreter of the trainings */
    const char *workloads; /* the folder with our train.py */
    const char *base;      /* where `File` of a radT table lies; NULL: its trainings are done by our
                              train.py instead */
    const char *gpu;       /* overrides the table's; NULL: not */
    int epochs, steps;
};

/* 0 with the experiment (ended by experiment_fini), or a fault that names file and line. */
int experiment_read(const char *path, const struct experiment_defaults *defaults,
    struct fault *fault, struct experiment *ret_experiment);

void experiment_fini(struct experiment *experiment);

/* "serial", "streams", "mps", or the profile. */
const char *bench_sharing_name(const struct bench_group *group);

#endif
