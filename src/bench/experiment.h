/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of collocation experiments: which trainings run together, and how they share the GPU. Two
 * forms are read; the columns say which.
 *
 * colloc's, a line per group: `mix` ("resnet26*4", "small:400+medium:150*2": name, steps per epoch,
 * count), `sharing` ("serial", "streams", "mps" or a MIG profile such as "2g.20gb"; one for all tasks,
 * or one for each: "4g.40gb/1g.10gb"), and optionally `gpu`, `epochs`, `steps`, `batch`, `threads`
 * (percentage of the SMs of each MPS client; one value for all, or one for each task: "30/70").
 *
 * radT's (github.com/Resource-Aware-Data-systems-RAD/radt), a line per task: `Experiment`,
 * `Workload` (the lines of one workload start together), `Devices` ("0", or "0+1" for a task on two
 * GPUs), `Collocation` ("-", "MPS" or a MIG profile), `File`, `Params`, and optionally `Name`,
 * `Status`, `Run` (radt_status.h writes both) and `Listeners` (radt_listeners.h).
 */
#ifndef COLLOC_BENCH_EXPERIMENT_H
#define COLLOC_BENCH_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"
#include "exec/profiler.h"

enum bench_sharing { BENCH_SERIAL, BENCH_STREAMS, BENCH_MPS, BENCH_MIG };

enum { BENCH_TASKS_MAX = 64, BENCH_THREADS_ALL = 100, BENCH_GPUS_SIZE = 64 };

struct bench_task {
    char *name;     /* of the training, for output */
    char **argv;    /* the command, NULL-terminated; argv[0] is found on PATH */
    char *folder;   /* its working folder; NULL: the caller's */
    bool is_script; /* a script of the user, not colloc's train.py */
    enum bench_sharing sharing;
    char profile[32];           /* of BENCH_MIG */
    int threads;                /* percentage of the SMs under MPS */
    char gpus[BENCH_GPUS_SIZE]; /* indices, comma-separated; "": the group's */
    enum profiler profiler;
    bool lists_host_memory; /* the host's memory over time is recorded: radT's listener free */
    char *environment;      /* the conda environment of its command; NULL: none */
    int line;               /* of the task's row in a table of radT; 0: it has none */
};

struct bench_group {
    char *name;       /* "resnet26*4 mps": unique in its experiment */
    char *mix;        /* "resnet26*4" */
    char *key;        /* of radT's workload: experiment and number; NULL in colloc's form */
    char *sharing;    /* "mps", or one for each task: "2g.10gb/1g.5gb" */
    bool is_finished; /* by its Status: run again only to complete this journal's repeats */
    char gpu[BENCH_GPUS_SIZE]; /* nvidia-smi's indices of all its GPUs, comma-separated */
    struct bench_task *tasks;
    int n_tasks;
    size_t tasks_capacity;
    int line; /* of the table, for messages */
};

struct experiment {
    struct bench_group *groups;
    size_t n_groups, capacity;
    bool is_radt;
};

/* Values for the columns that the table lacks. */
struct experiment_defaults {
    const char *python;    /* the interpreter of the trainings */
    const char *workloads; /* the folder with colloc's train.py */
    const char *base;      /* folder of a radT table's `File`s; NULL: the current folder, and
                              colloc's train.py stands in for a `File` that is not there */
    const char *current;   /* the current folder; NULL: paths stay relative */
    const char *conda;     /* runs a radT table's scripts in their conda environments; NULL: none */
    const char *gpu;       /* overrides the table's; NULL: does not */
    int epochs, steps;
};

/*
 * Reads a table, or a YAML specification of radT (radt_sweep.h).
 *
 * ret_experiment: ended by experiment_fini
 *
 * Returns 0, or -errno with a fault that names file and line.
 */
int experiment_read(const char *path, const struct experiment_defaults *defaults,
    struct fault *fault, struct experiment *ret_experiment);

/* Releases the groups and their texts. */
void experiment_fini(struct experiment *experiment);

/* Returns "serial", "streams", "mps", or the task's MIG profile. */
const char *bench_sharing_name(const struct bench_task *task);

/* Do the group's tasks run one after the other? */
bool bench_group_is_serial(const struct bench_group *group);

/* Has the group a task that shares in this way? */
bool bench_group_has(const struct bench_group *group, enum bench_sharing sharing);

#endif
