/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group of trainings at work: started together (or one after the other, for "serial"), listened
 * to, waited for. There are two ways: as processes of ours, and as tasks of a daemon.
 */
#ifndef COLLOC_BENCH_CREW_H
#define COLLOC_BENCH_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "bench/experiment.h"
#include "bench/told.h"

struct client;

struct crew_result {
    double started_unix_s,
        ended_unix_s;       /* of the process, or from submission to the end of the task */
    int exit_code;          /* 128 and the signal when one ended it; -1: never started */
    char failure[400];      /* "" when it ended well; else how it ended, and what it said last */
    bool out_of_gpu_memory; /* its failure is what was to be found out: a result */
    struct told told;
};

struct crew {
    const struct bench_group *group;
    const char *const *places; /* for each task what CUDA_VISIBLE_DEVICES takes; NULL: as it is */
    const char *mps_pipe;      /* pipe directory of the MPS that they are clients of, or NULL */
    const char *log_path; /* what trainings say on stderr goes to this name and ".0", ".1", ... */
    int64_t period_us;    /* between two looks */
    int64_t limit_us;     /* of the whole group */
    int signals;          /* a signalfd: what arrives there ends the group */
    void (*look)(void *context);
    void *context;
};

enum crew_answer { CREW_INTERRUPTED = 1, CREW_TOO_LONG };

/* Fills ret_results[group->n_tasks]. 0 when all have ended, well or not; a crew_answer when they
 * were ended; or a fault. */
int crew_of_processes(
    const struct crew *crew, struct fault *fault, struct crew_result *ret_results);

/* Hands task number `i` of the group in. 0 with its id, or a fault. */
typedef int crew_submit(
    void *context, const struct bench_group *group, int i, struct fault *fault, int64_t *ret_id);

/* The same through the daemon that `client` talks to. Needs no places: those are the daemon's
 * choice. */
int crew_of_tasks(const struct crew *crew, struct client *client, crew_submit *submit,
    void *submit_context, struct fault *fault, struct crew_result *ret_results);

#endif
