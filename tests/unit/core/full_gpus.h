/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pretend server on which tasks of unknown memory start anywhere, fill its GPUs, wait for memory,
 * give way to each other and come back, while programs of others come and go, the driver refuses
 * checkpoints and processes are killed. test_full_gpus.c draws servers and judges them.
 *
 * Time passes in steps of 100 ms. In each the programs compute and allocate, the orders of the core
 * (suspend, resume, move) make progress one after the other as in the daemon
 * (daemon/suspension/order_groups.c), all GPUs are sampled, and waits are reported.
 */
#ifndef COLLOC_TESTS_CORE_FULL_GPUS_H
#define COLLOC_TESTS_CORE_FULL_GPUS_H

#include <stdint.h>
#include <stdio.h>

#include "core/core.h"

enum { CROWD_GPUS_MAX = 4, CROWD_TASKS_MAX = 24, CROWD_PIECES_MAX = 6 };

/* What a task does alone: it takes pieces of memory after so much work. */
struct crowd_task {
    int64_t submit_us, work_us;
    int n_pieces;
    struct {
        int64_t bytes, at_us;
    } pieces[CROWD_PIECES_MAX];
};

/* How often, in parts of a thousand of each such call or, of what comes by itself, in a minute. */
struct crowd_faults {
    int refuses;  /* the driver does not take a context, */
    int clings;   /* nor, when others have taken the rest of the memory, what it has restored */
    int loses;    /* a process cannot be restored */
    int hangs;    /* a call of the program does not return for 30 s */
    int external; /* an external program takes memory of a GPU, for a while */
    int kills;    /* a task's process is killed */
    int restarts; /* the daemon is killed */
};

struct crowd {
    uint64_t seed;
    int n_gpus, n_tasks;
    int64_t gpu_bytes;
    int64_t hidden_bytes; /* of each GPU: NVML counts them as free, and no allocation gets them */
    struct core_settings settings;
    enum sharing sharing;
    bool is_declared; /* their memory is */
    struct crowd_faults faults;
    struct crowd_task tasks[CROWD_TASKS_MAX]; /* from 0 on: task 1 is the first */
};

struct crowd_result {
    int64_t total_us;
    int n_waits, n_suspensions, n_moves, n_out_of_memory, n_run_again, n_lost, n_killed, n_restarts;
    int64_t computed_twice_us;
};

/* Runs the server until all tasks have ended. Fails the test where one does not end, the server
 * stands still, or something is lost. `log`: where to write what happens; NULL: nowhere. */
struct crowd_result crowd_run(const struct crowd *crowd, FILE *log);

#endif
