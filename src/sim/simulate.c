/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulation from beginning to end. The core runs under the virtual-clock driver; this file is
 * the world behind it, and dispatches the world's wake-ups (simulation_run.h lists them, and which
 * file handles what). The run ends when nothing is scheduled any more: the trace has been read, and
 * each task has ended or can never start.
 */
#include "sim/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sim/event_line.h"
#include "sim/simulation_run.h"

/* ---- the world behind the driver ---- */

static void sample_each_second(struct simulation_run *run)
{
    simulation_run_check(run, sampling_sample_all(&run->sampling));
    if (run->n_unended + run->n_services > 0 || run->next_arrival.task)
        simulation_run_wake(run, WAKE_SAMPLE, sim_now_us(run->sim) + SECOND_US, 0, 0);
}

static void on_wake(void *context, struct sim *sim, const struct sim_wakeup *wakeup)
{
    struct simulation_run *run = context;
    if (run->simulation->cancelled && *run->simulation->cancelled)
        simulation_run_check(run, -ECANCELED);
    if (run->error)
        return;
    if (run->timeline.out)
        timeline_advance(&run->timeline, wakeup->time_us);
    switch ((enum simulation_wakeup)wakeup->kind) {
    case WAKE_ARRIVAL:
        submission_submit(run);
        simulated_services_check_end(run);
        break;
    case WAKE_MEMORY_STEP:
        simulated_task_on_memory_step(run, wakeup);
        break;
    case WAKE_FINISH:
        simulated_task_on_finish(run, wakeup);
        break;
    case WAKE_YIELDED:
        simulated_task_on_yielded(run, wakeup);
        break;
    case WAKE_WAITED:
        simulated_task_on_waited(run, wakeup);
        break;
    case WAKE_SAMPLE:
        if (run->simulation->every_second)
            sample_each_second(run);
        else
            simulation_run_check(run, sampling_on_wakeup(&run->sampling, (int)wakeup->subject));
        break;
    case WAKE_KILL:
        simulated_task_on_kill(run, wakeup);
        break;
    case WAKE_SERVICE:
        simulated_service_on_second(run, wakeup);
        break;
    case WAKE_SERVICES_END:
        simulated_services_end(run);
        break;
    case WAKE_SPEED:
        simulated_task_on_speed(run, wakeup);
        break;
    case WAKE_PROBE:
        simulated_task_on_probe(run, wakeup);
        break;
    case WAKE_RUNG:
        simulated_trial_on_rung(run, wakeup);
        break;
    }
}

/* ---- --trace-out ---- */

static const char *name_task(
    const struct simulation_run *run, uint64_t id, char *buffer, size_t size)
{
    const struct simulated_task *task = id && id <= run->n_tasks ? run->tasks[id] : NULL;
    snprintf(buffer, size, "%.120s#%" PRIu64, task ? task->type->name : "", id);
    return buffer;
}

static void write_event(void *context, struct sim *sim, const struct event *event)
{
    const struct simulation_run *run = context;
    char name[160], line[2048];
    name_task(run, event->task, name, sizeof name);
    if (event_line_format(event, name, line, sizeof line))
        fprintf(run->simulation->trace_out, "%s\n", line);
}

static void write_wait(void *context, struct sim *sim, uint64_t task)
{
    const struct simulation_run *run = context;
    char name[160], line[2048];
    name_task(run, task, name, sizeof name);
    event_line_format_wait(sim_core(sim), task, sim_now_us(sim), name, line, sizeof line);
    fprintf(run->simulation->trace_out, "%s\n", line);
}

/* ---- the run ---- */

static int prepare_outputs(struct simulation_run *run)
{
    const struct simulation *simulation = run->simulation;
    run->observer = (struct sim_observer){run, write_event, write_wait};
    if (simulation->tasks_out)
        task_rows_begin(simulation->tasks_out);
    return simulation->timeline_out
               ? timeline_init(&run->timeline, simulation->timeline_out, &run->gpus)
               : 0;
}

static int prepare_gpus(struct simulation_run *run)
{
    const struct simulation *simulation = run->simulation;
    int r = simulated_gpus_init(&run->gpus, simulation->cluster, simulation->laws);
    run->gpus.on_speed_changed = simulated_task_on_speed_changed;
    run->gpus.context = run;
    run->gpus.mixes = simulation->mixes;
    run->gpus.mix_use = simulation->mix_use ? simulation->mix_use : &run->mix_use;
    run->totals = run_totals_start(simulation->cluster);
    run->can_start = calloc((size_t)simulation->catalogue->n, sizeof *run->can_start);
    run->learned = calloc((size_t)simulation->catalogue->n, sizeof *run->learned);
    return run->can_start && run->learned ? r : -ENOMEM;
}

static bool has_services(const struct catalogue *catalogue)
{
    for (size_t i = 0; i < catalogue->n; i++)
        if (catalogue->tasks[i].service)
            return true;
    return false;
}

static int prepare_core(struct simulation_run *run)
{
    struct core_settings settings = run->simulation->settings;
    settings.is_calibrated =
        true; /* the policy predicts with the constants of the simulated GPUs */
    settings.sharing_constants = run->simulation->laws->interference;
    settings.can_pause |= run->simulation->promise > 0; /* as the daemon */
    if (has_services(run->simulation->catalogue))
        settings.can_pause = settings.can_suspend = true; /* as in the daemon */
    if (run->arrivals.user_column < 0 && !settings.user_limits.usage_us)
        settings.usage_half_life_us = 0; /* one user: charges would decide nothing */
    settings.conditions.sample_valid_us = INT64_MAX /
                                          2; /* left-out samples must not make one old */
    run->world = (struct sim_world){
        run, simulated_task_start, simulated_task_kill, on_wake, simulated_task_yield};
    run->sim = sim_create(
        &settings, &run->world, run->simulation->trace_out ? &run->observer : NULL);
    return run->sim ? 0 : -ENOMEM;
}

static void schedule_first(struct simulation_run *run)
{
    const struct simulation *simulation = run->simulation;
    const struct cluster *cluster = simulation->cluster;
    struct event gpus = {
        .kind = EVENT_GPUS, .gpus = {.list = cluster->identities, .n = cluster->n_places}};
    simulation_run_check(run, sim_schedule_event(run->sim, &gpus));
    run->sampling = (struct sampling){.sim = run->sim,
        .gpus = &run->gpus,
        .settings = &simulation->settings,
        .every_second = simulation->every_second,
        .wakeup_kind = WAKE_SAMPLE};
    simulation_run_check(run, sampling_init(&run->sampling));
    if (simulation->every_second)
        simulation_run_wake(run, WAKE_SAMPLE, 0, 0, 0);
    submission_schedule_first(run);
}

static int run_to_end(struct simulation_run *run)
{
    schedule_first(run);
    int r = run->error ? 0 : sim_run(run->sim, TIME_NEVER);
    if (run->timeline.out)
        timeline_advance(&run->timeline, TIME_NEVER);
    simulation_run_check(run, run->gpus.error);
    return run->error ? run->error : r;
}

static int fault_loop(const struct simulation_run *run, struct fault *fault)
{
    char name[160], time[32];
    event_line_format_time(sim_now_us(run->sim), time, sizeof time);
    return fault_set(fault, ELOOP,
        "at %s s task %s waits and goes on again and again, and no time passes: this is an error "
        "of the simulator, please report it with the trace",
        time, name_task(run, sim_last_task(run->sim), name, sizeof name));
}

static int fault_deadlock(const struct simulation_run *run, struct fault *fault)
{
    char name[160];
    uint64_t first = 1;
    while (first < run->n_tasks && !run->tasks[first])
        first++;
    return fault_set(fault, EDEADLK,
        "%" PRIu64 " tasks never end: nothing happens any more. The first of them is %s (%s)",
        run->n_unended, name_task(run, first, name, sizeof name),
        task_state_word(core_task(sim_core(run->sim), first)->state));
}

/* Sets the faults that have no text yet. Returns `r`, or -EDEADLK for tasks that never started or
 * ended. */
static int check_end(const struct simulation_run *run, int r, struct fault *fault)
{
    if (r == -ENOMEM)
        return fault_set(fault, ENOMEM, "out of memory");
    if (r == -ELOOP)
        return fault_loop(run, fault);
    if (r == -EDEADLK)
        return fault_deadlock(run, fault);
    if (r == 0 && run->n_stuck)
        return fault_set(fault, EDEADLK,
            "%" PRIu64
            " tasks never ended beside the services: either these miss their latency targets, are "
            "predicted to with a training beside them, or hold GPUs alone; or the settings let "
            "no GPU take them",
            run->n_stuck);
    if (r == 0 && run->n_unended)
        return fault_set(fault, EDEADLK,
            "%" PRIu64 " tasks never started: the settings let no GPU take them", run->n_unended);
    return r;
}

static void free_task(struct simulated_task *task)
{
    if (!task)
        return;
    free(task->service);
    free(task->trial);
    free(task);
}

static void clean_up(struct simulation_run *run)
{
    for (uint64_t i = 1; i <= run->n_tasks; i++)
        free_task(run->tasks[i]);
    free(run->tasks);
    simulated_arrays_free(run);
    simulated_speeds_free(run);
    free(run->can_start);
    for (size_t i = 0; run->learned && i < run->simulation->catalogue->n; i++)
        learned_runs_fini(&run->learned[i]);
    free(run->learned);
    sampling_fini(&run->sampling);
    timeline_fini(&run->timeline);
    if (run->gpus.cluster)
        simulated_gpus_fini(&run->gpus);
    mix_use_fini(&run->mix_use);
    arrivals_close(&run->arrivals);
    sim_destroy(run->sim);
}

int simulate_trace(
    const struct simulation *simulation, struct fault *fault, struct simulation_result *ret_result)
{
    struct simulation_run run = {.simulation = simulation, .fault = fault};
    int r = arrivals_open(&run.arrivals, simulation->trace, simulation->catalogue, fault);
    if (r == 0 && simulation->stop)
        r = arrivals_take_arrays(&run.arrivals, fault);
    if (r == 0 && simulation->resample)
        r = arrivals_resample(&run.arrivals, simulation->resample, fault);
    if (r == 0)
        r = prepare_gpus(&run);
    if (r == 0)
        r = prepare_outputs(&run);
    if (r == 0)
        r = prepare_core(&run);
    if (r == 0)
        r = run_to_end(&run);
    r = check_end(&run, r, fault);
    if (r == 0)
        run_totals_calculate(&run.totals, &run.gpus, &run.result);
    simulated_speeds_end(&run);
    *ret_result = run.result;
    if (simulation->services)
        *simulation->services = run.services;
    else
        service_totals_fini(&run.services);
    clean_up(&run);
    return r;
}

int simulate_comparison(
    const struct simulation *simulation, struct fault *fault, struct simulation_result *ret_result)
{
    struct simulation quiet = *simulation;
    quiet.trace_out = quiet.timeline_out = quiet.tasks_out = quiet.remarks = NULL;
    quiet.users = NULL;
    quiet.mix_use = NULL;
    quiet.services = NULL;
    int r = simulate_trace(&quiet, fault, ret_result);
    if (r == -EDEADLK && fault)
        *fault = (struct fault){0};
    return r == -EDEADLK ? COMPARISON_NONE : r;
}
