/* SPDX-License-Identifier: Apache-2.0 */
/* What is simulated (simulate.h), and what comes out. */
#ifndef COLLOC_SIM_SIMULATION_H
#define COLLOC_SIM_SIMULATION_H

#include <stdatomic.h>
#include <stdio.h>

#include "core/core.h"
#include "sim/catalogue.h"
#include "sim/cluster.h"
#include "sim/mixes.h"

/* When tasks ended after their submission, by id - 1; 0: it did not end. For free(). */
struct completions {
    double *jct_s;
    size_t n, capacity;
};

struct user_totals;
struct service_totals;

struct simulation {
    const char *trace;     /* path; NULL: each task of the catalogue once, at the beginning */
    const char *log;       /* of which the trace was made: remarks name it instead; or NULL */
    const char *only_user; /* the others' tasks are not submitted; NULL: all are */
    const struct catalogue *catalogue;
    const struct cluster *cluster;
    const struct gpu_constants *laws;
    struct core_settings settings;
    enum sharing sharing; /* of tasks; a policy that gives out whole GPUs always uses streams */
    uint64_t seed;       /* 0: each task takes its time in the catalogue; otherwise times are spread
                      by gpu_constants.spread */
    uint64_t resample;   /* 0: the trace itself; otherwise the seed of a trace drawn from it
                          (arrivals_resample) */
    double need_error;   /* standard deviation of the logarithm of the reported memory requirement
                          over the real one; 0: none */
    bool learns;         /* it learns from completed runs what further ones take (learned_runs.h) */
    bool knows_activity; /* the scheduler knows each task's expected activity */
    bool knows_time;     /* the scheduler knows each task's expected time */
    bool take_turns;     /* tasks take turns in time slots (core/pass/slots.c) */
    double promise;      /* the promise of some tasks (docs/promise.md); 0: none */
    double promise_share;  /* the part of the tasks that have it */
    double speeds_unknown; /* the part of the tasks of which no earlier run was alone */
    double delay_factor;   /* of the delay of tasks by others, over that of the scheduler's model;
                             0: as 1 */
    double delay_error; /* standard deviation of the logarithm of a further factor of each kind of
                             task (simulated_speed.c); 0: none */
    const struct halving_rule *stop; /* of the trace's arrays; NULL: their trials run to the end */
    uint64_t curve_seed;             /* of the loss curves of trials without given values */
    bool every_second;               /* take each sample that the daemon would take: slow */
    FILE *trace_out;                 /* a line for each event (sim/event_line.h), or NULL */
    FILE *timeline_out, *tasks_out;  /* CSV (sim/records.h), or NULL */
    struct completions *completions; /* to be filled, or NULL */
    const struct mixes *mixes;       /* measured speeds, instead of the laws'; or NULL */
    struct mix_use *mix_use;         /* to be filled where there are mixes, or NULL; the caller ends
                                        it with mix_use_fini, also after an error */
    struct user_totals *users;       /* to be filled (sim/user_totals.h), or NULL */
    struct service_totals *services; /* to be set (sim/service_totals.h), or NULL; the caller ends
                                        them with service_totals_fini, also after an error */
    FILE *remarks;                   /* which tasks were left out, and why; or NULL */
    const atomic_bool *cancelled;    /* once true, the run ends with -ECANCELED; or NULL */
};

struct simulation_result {
    double total_s;                           /* from the first submission to the last end */
    double avg_wait_s, avg_exec_s, avg_jct_s; /* over the tasks that ended */
    int64_t oom;                              /* crashes for lack of GPU memory */
    int64_t submitted, completed, failed;     /* trainings */
    int64_t suspensions, moves;               /* of tasks that gave way; pauses included */
    int64_t memory_waits;                     /* allocations that waited for memory */
    double memory_wait_s;                     /* how long all of them together did */
    struct reading max_stretch;               /* the largest ratio of a task's completion time to
                                               * that of first come, first served on whole GPUs;
                                               * only simulate_with_stretch calculates it, where
                                               * tasks end in both */
    int64_t arrays, stopped;                  /* with a stop rule; trials that it stopped */
    int64_t best_kept;                        /* arrays whose best trial was not stopped */
    double saved_gpu_s;                       /* GPU time alone that stopped trials had left */
    int64_t promised, kept;                   /* tasks with a promise that completed; that took no
                                               * longer */
    double longest_promised;                  /* of those tasks: times as long as alone */
    int64_t measured;                         /* of those tasks: their speed alone was known */
    int64_t probes;                           /* pauses of tasks for probes that have ended */
    int64_t probed_us;                        /* how long they took together */
    double probes_cost;                       /* of a task that ended, at most: the part of its
                                               * time that it was paused for them */
    struct reading error_first_hour, error_later;  /* median error of predicted slowdowns, as a part
                                                   * of the true ones */
    struct learned_delay learned[SHARING_MPS + 1]; /* at the end */
    int64_t left_out;                              /* tasks of the trace that fit no GPU */
    double energy_mj, mean_smact;                  /* over all GPUs, within total_s */
    double lower_bound_s; /* of total_s, for any policy (sim/bound.h); 0: not
                                               * known, as trials are stopped */
};

#endif
