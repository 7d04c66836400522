/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a group of trainings: starts them together ("serial": one after the other), parses their
 * output and waits for their ends. There are two ways: as processes of this program
 * (trainer_processes.c), and as tasks of a daemon (trainer_tasks.c).
 */
#ifndef COLLOC_BENCH_TRAINER_GROUP_H
#define COLLOC_BENCH_TRAINER_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "bench/experiment.h"
#include "bench/training_log.h"

struct client;

/* Of a run of MLflow's, whose ids have 32 characters (chosen: twice that). */
enum { BENCH_RUN_ID_SIZE = 64 };

struct training_result {
    double started_unix_s, ended_unix_s; /* of the process; or submission and end of the task */
    int exit_code;                       /* 128 + N for signal N; -1: never started */
    char failure[400];      /* "": it succeeded; else how it ended, and its last message */
    bool out_of_gpu_memory; /* the failure is a result of the experiment */
    struct training_report report;
};

struct trainer_group {
    const struct bench_group *group;
    const char *const *devices;         /* each task's CUDA_VISIBLE_DEVICES; NULL: inherited */
    char (*run_ids)[BENCH_RUN_ID_SIZE]; /* each task's MLFLOW_RUN_ID; "": it has none */
    const char *mps_pipe;     /* pipe directory of their MPS control daemon; NULL: no MPS */
    const char *log_path;     /* stderr of task N goes to this path with ".N" appended, its stdout
                                 to that with ".out" appended */
    const char *profile_path; /* the same for profiles */
    int64_t period_us;        /* between two calls of `sample` */
    int64_t limit_us;         /* run time of the whole group */
    int signals;              /* a signalfd: a signal ends the group */
    void (*sample)(void *context); /* samples the GPUs */
    void *context;                 /* of `sample` */
};

enum trainer_answer { TRAINER_INTERRUPTED = 1, TRAINER_TIMEOUT };

/*
 * Runs the group as processes. Each task's standard output is parsed, and stored beside its log.
 *
 * ret_results: one entry for each of group->n_tasks
 *
 * Returns 0 when all have ended, whether they failed or not; a trainer_answer when they were
 * killed; or -errno with a fault.
 */
int trainer_group_run_processes(
    const struct trainer_group *trainers, struct fault *fault, struct training_result *ret_results);

/* Submits task `i` of the group. Returns 0 with its id, or -errno with a fault. */
typedef int training_submit(
    void *context, const struct bench_group *group, int i, struct fault *fault, int64_t *ret_id);

/* The same as tasks of the daemon that `client` is connected to, which chooses the GPUs: `devices`
 * is not used. */
int trainer_group_run_tasks(const struct trainer_group *trainers, struct client *client,
    training_submit *submit, void *submit_context, struct fault *fault,
    struct training_result *ret_results);

#endif
