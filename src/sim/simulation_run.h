/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one simulation, shared by the files that make it up:
 *
 *     simulate.c         prepares, dispatches wake-ups, cleans up
 *     task_submission.c  the trace's arrivals become submitted tasks
 *     task_learning.c    what completed runs say of further ones
 *     simulated_task.c   the life of an attempt: start, memory steps, end
 *     simulated_end.c    a task that has ended is counted
 *     simulated_change.c what sampling has to know of changes
 *     simulated_yield.c  how a task gives way: suspended, resumed, moved, paused, or waiting
 *     simulated_service.c
 *                        the requests of a service, and how long they take
 *     simulated_sweep.c  arrays with a stop rule: their reports, and what their stop saves
 *     simulated_speed.c  measured speeds, and promises of them
 *     sampling.c         which samples of the GPUs are taken
 *     simulated_gpus.c   speeds, activity, power
 *     run_totals.c       what the result is calculated from
 */
#ifndef COLLOC_SIM_SIMULATION_RUN_H
#define COLLOC_SIM_SIMULATION_RUN_H

#include "sim/arrivals.h"
#include "sim/learned_runs.h"
#include "sim/loss_curve.h"
#include "sim/records.h"
#include "sim/run_totals.h"
#include "sim/sampling.h"
#include "sim/service_totals.h"
#include "sim/sim_driver.h"
#include "sim/simulated_gpus.h"
#include "sim/simulation.h"
#include "sim/user_totals.h"

/* The wake-ups of a simulation. */
enum simulation_wakeup {
    WAKE_ARRIVAL,      /* the next task of the trace arrives */
    WAKE_MEMORY_STEP,  /* subject: task; version: attempt */
    WAKE_FINISH,       /* subject: task; version: which plan of its end */
    WAKE_YIELDED,      /* subject: task; version: attempt */
    WAKE_WAITED,       /* subject: task; version: attempt: an allocation may have waited too long */
    WAKE_SAMPLE,       /* subject: place; all places with every_second */
    WAKE_KILL,         /* subject: task; version: attempt */
    WAKE_SERVICE,      /* subject: task; once a second */
    WAKE_SERVICES_END, /* the last training has ended */
    WAKE_RUNG,         /* subject: task; version: as of WAKE_FINISH */
    WAKE_SPEED,        /* subject: task; version: attempt; every five seconds */
    WAKE_PROBE         /* subject: task; version: attempt; a probe of it ends */
};

/* The daemon reports the p99 of the last ten seconds (docs/services.md). */
enum { SERVICE_REPORTS = 10 };

/* The data of a service beside its task. */
struct simulated_service {
    int64_t submitted_us;
    int64_t end_us;     /* its time after its first start; TIME_NEVER: before that, or no time */
    struct demand busy; /* on its GPUs, while it answers a request */
    double load;        /* the part of the time in which it does, as its GPUs have it */
    struct request_queue queue;
    double p99_s[SERVICE_REPORTS]; /* of the last seconds, a ring */
    int n_reports;                 /* of this attempt */
    struct service_total *total;   /* borrowed */
};

/* An array whose losing trials are stopped. */
struct simulated_array {
    uint64_t id;
    double best_cost;  /* the least of its trials at their end, if none were stopped */
    bool is_best_kept; /* a trial with that cost has completed */
};

/* The data of a task of such an array. */
struct simulated_trial {
    struct simulated_array *array; /* borrowed */
    int next_rung;                 /* that it reports */
    struct loss_curve curve;
    double end_cost; /* that it has, or would have, after its last step */
};

/* A submitted task that has not ended. */
struct simulated_task {
    struct running_task running; /* the first member: on_speed_changed gets its address */
    const struct sim_task *type;
    double solo_s;      /* how long it would run alone */
    int64_t start_us;   /* of the attempt */
    int attempt;        /* the number of the running attempt; 0: none runs */
    int memory_steps;   /* taken by the attempt */
    int64_t step_us;    /* when it takes the next step; TIME_NEVER: not before it is resumed */
    int places_stepped; /* places on which it has taken the step that it is at, from the first */
    int finish_version; /* counts planned ends: only the last plan counts */
    bool waits;         /* an allocation of it waits for memory, */
    int64_t wait_us;    /* since then, */
    int retries;        /* and has failed so often though it was granted */
    bool has_speed;     /* how fast it is alone is known */
    bool is_refused;    /* its resumption finds too little memory, or its allocation fails */
    double kind_speed;  /* of the attempt, as running.kind_speed, also once it has ended */
    int64_t yield_us;   /* how long its suspension, resumption or move takes */
    int copy_place;     /* where its copy takes memory while it is suspended, */
    int64_t copy_bytes; /* so much; 0: on no GPU */
    struct simulated_service *service; /* NULL: a training */
    struct simulated_trial *trial;     /* owned; NULL: of no array with a stop rule */
};

/* Of the scheduler's predictions of slowdowns: parts of the true one. */
struct prediction_errors {
    double *list;
    size_t n, capacity;
};

struct simulation_run {
    const struct simulation *simulation;
    struct sim_world world;
    struct sim_observer observer;
    struct sim *sim;
    struct simulated_gpus gpus;
    struct sampling sampling;
    struct timeline timeline;
    struct arrivals arrivals;
    struct arrival next_arrival;   /* the next arrival; its task is NULL after the last one */
    bool *can_start;               /* by task of the catalogue: known to be able to start here */
    struct learned_runs *learned;  /* by task of the catalogue */
    struct simulated_task **tasks; /* by id, from 1; NULL after the task's end */
    uint64_t n_tasks, n_unended;   /* all; trainings that have not ended */
    uint64_t n_services;           /* services that have not ended */
    uint64_t n_stuck;              /* trainings that never ended beside services; 0: none yet */
    int64_t computed_us;           /* when a training last changed its speed */
    int64_t services_change_us; /* when a service last changes its rate or ends; may be to come */
    struct service_totals services;
    size_t tasks_capacity;
    struct simulated_array **arrays; /* owned */
    size_t n_arrays, arrays_capacity;
    const struct running_task *changing; /* the task that is starting or ending now */
    struct run_totals totals;
    struct prediction_errors errors[2]; /* in the first hour, and later */
    uint64_t n_speeds;                  /* that were reported */
    struct mix_use mix_use;             /* of comparisons, whose caller does not ask for it */
    struct simulation_result result;
    struct fault *fault;
    int error; /* 0, or the first -errno: nothing happens after it */
};

/* Records the first error, if `r` is one. */
void simulation_run_check(struct simulation_run *run, int r);

/* Schedules a wake-up; errors are recorded. */
void simulation_run_wake(struct simulation_run *run, enum simulation_wakeup kind, int64_t time_us,
    uint64_t subject, int version);

/* ---- task_submission.c ---- */

/* Reads the first arrival of the trace and schedules it. */
void submission_schedule_first(struct simulation_run *run);

/* Submits the task that arrives now, or its whole array; or reports it and leaves it out if it fits
 * no GPU. Schedules the next arrival. */
void submission_submit(struct simulation_run *run);

/* ---- task_learning.c ---- */

/* Adds to a request of the user what completed runs of the task say, if there are any. */
void learning_add(const struct simulation_run *run, const struct sim_task *type, uint32_t uid,
    struct task_request *request);

/* A run of the task has completed: its waiting tasks learn from it. */
void learning_note(struct simulation_run *run, const struct sim_task *type, uint32_t uid);

/* ---- simulated_change.c ---- */

/* Plans a sample of each place of the task. */
void simulated_task_plan_samples(struct simulation_run *run, const struct running_task *task);

/* To be called before the task begins or stops to compute on its places. */
void simulated_task_prepare_change(struct simulation_run *run, const struct running_task *task);

/* simulated_gpus.on_speed_changed: makes a new plan of the attempt's end. */
void simulated_task_on_speed_changed(void *context, struct running_task *running);

/* Plans the next memory step, instead of one that is planned. */
void simulated_task_plan_memory_step(
    struct simulation_run *run, struct simulated_task *task, int64_t time_us);

/* ---- simulated_end.c ---- */

/* Counts the task and frees it if the core has ended it. */
void simulated_task_forget_if_done(struct simulation_run *run, uint64_t id);

/* To be called when a training has ended, or no arrival is left: plans the end of the services that
 * end with the trainings, if none is left. */
void simulated_services_check_end(struct simulation_run *run);

/* ---- simulated_task.c ---- */

/* sim_world.start: begins an attempt of the task. */
void simulated_task_start(void *context, struct sim *sim, const struct task *started);

/* sim_world.kill: ends the attempt of a service or of a losing trial; nothing else in a trace makes
 * the core end a training early. */
void simulated_task_kill(void *context, struct sim *sim, const struct task *killed);

/* WAKE_KILL: the attempt has been killed. */
void simulated_task_on_kill(struct simulation_run *run, const struct sim_wakeup *wakeup);

/* WAKE_MEMORY_STEP: the attempt allocates its next part of memory, or fails to. */
void simulated_task_on_memory_step(struct simulation_run *run, const struct sim_wakeup *wakeup);

/* Its copy on a neighbour GPU is not needed any more. */
void simulated_task_drop_copy(struct simulation_run *run, struct simulated_task *task);

/* WAKE_FINISH: the attempt has done its work, if the plan is still the last. */
void simulated_task_on_finish(struct simulation_run *run, const struct sim_wakeup *wakeup);

/* ---- simulated_service.c ---- */

/* Makes a submitted task a service. Returns 0 or -ENOMEM. */
int simulated_service_init(
    struct simulation_run *run, struct simulated_task *task, int64_t submitted_us);

/* An attempt of the service begins, whose demand and time of start are set. */
void simulated_service_start(struct simulation_run *run, struct simulated_task *task);

/* WAKE_SERVICE: a second of requests. */
void simulated_service_on_second(struct simulation_run *run, const struct sim_wakeup *wakeup);

/* WAKE_SERVICES_END: cancels them. */
void simulated_services_end(struct simulation_run *run);

/* ---- simulated_sweep.c ---- */

/* Adds an array of that id. Returns it, borrowed; NULL without memory. */
struct simulated_array *simulated_array_create(struct simulation_run *run, uint64_t id);

/*
 * Makes a task a trial of the array.
 *
 * metric: the given values (loss_curve_parse); NULL: they are drawn
 *
 * Returns 0, -EINVAL or -ENOMEM.
 */
int simulated_trial_init(struct simulation_run *run, struct simulated_task *task,
    struct simulated_array *array, const char *metric);

/* Plans the report at the trial's next rung by its speed, which is up to date. */
void simulated_trial_plan(struct simulation_run *run, struct simulated_task *task);

/* WAKE_RUNG: the trial has reached the rung, if the plan is still the last. */
void simulated_trial_on_rung(struct simulation_run *run, const struct sim_wakeup *wakeup);

/* Counts a trial that has ended. */
void simulated_trial_end(
    struct simulation_run *run, const struct simulated_task *task, const struct task *ended);

void simulated_arrays_free(struct simulation_run *run);

/* ---- simulated_speed.c ---- */

/* Is a use made of measured speeds? */
bool simulated_speeds_are_reported(const struct simulation *simulation);

/* By which factor others delay tasks of this kind more than the scheduler's model says. */
double simulated_delay_factor(const struct simulation_run *run, const struct sim_task *type);

/* The promise of the task that is submitted as the `index`th; not valid: none. */
struct reading simulated_promise(const struct simulation_run *run, uint64_t index);

/* The attempt begins to report its speed. */
void simulated_task_begin_speeds(struct simulation_run *run, const struct simulated_task *task);

/* WAKE_SPEED: a window of five seconds has passed. */
void simulated_task_on_speed(struct simulation_run *run, const struct sim_wakeup *wakeup);

/* The task is paused so that a promised one is measured alone. */
void simulated_task_begin_probe(struct simulation_run *run, const struct task *paused);

/* WAKE_PROBE: steps have been counted. */
void simulated_task_on_probe(struct simulation_run *run, const struct sim_wakeup *wakeup);

/* Counts what probes have cost a task that has ended. */
void simulated_probes_end(struct simulation_run *run, const struct task *ended);

/* Counts the promise of a task that has ended. */
void simulated_promise_end(
    struct simulation_run *run, const struct simulated_task *task, const struct task *ended);

/* Sets what the result says of predictions; simulated_speeds_free must follow. */
void simulated_speeds_end(struct simulation_run *run);
void simulated_speeds_free(struct simulation_run *run);

/* ---- simulated_yield.c ---- */

/* sim_world.yield: begins to suspend, resume or move the task, pauses or continues it, or answers
 * its allocation that waits. */
void simulated_task_yield(
    void *context, struct sim *sim, const struct task *yielding, enum effect_kind effect);

/* WAKE_YIELDED: the task is suspended, resumed or moved. */
void simulated_task_on_yielded(struct simulation_run *run, const struct sim_wakeup *wakeup);

/* The task's next allocation, of `bytes`, has failed: may it wait for memory, or wait again? */
bool simulated_task_may_wait(
    const struct simulation_run *run, const struct simulated_task *task, int64_t bytes);

/* It waits. */
void simulated_task_wait_for_memory(
    struct simulation_run *run, struct simulated_task *task, int64_t bytes);

/* WAKE_WAITED: an allocation that still waits fails. */
void simulated_task_on_waited(struct simulation_run *run, const struct sim_wakeup *wakeup);

#endif
