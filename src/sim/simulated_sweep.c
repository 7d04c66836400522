/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays whose losing trials are stopped (--stop). A trial reports its metric when it has done the
 * steps of a rung; the core ranks the report and stops the trial, as under the daemon. With rungs
 * at 3, 9, ... a training of 12 steps:
 *
 *     work   0 ---- 3/12 ------------- 9/12 ---- 1
 *                report, rung 0     report, rung 1
 *
 * When a rung is reached depends on the trial's speed, so it is planned anew with each change of
 * speed, as the end is (simulated_task.c). A report at the last step would save nothing, and is
 * left out. A trial that is run again reports only rungs that it has not reported.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "sim/simulation_run.h"

struct simulated_array *simulated_array_create(struct simulation_run *run, uint64_t id)
{
    if (ARRAY_RESERVE(run->arrays, run->arrays_capacity, run->n_arrays + 1) < 0)
        return NULL;
    struct simulated_array *array = calloc(1, sizeof *array);
    if (!array)
        return NULL;
    array->id = id;
    array->best_cost = INFINITY;
    run->result.arrays++;
    return run->arrays[run->n_arrays++] = array;
}

int simulated_trial_init(struct simulation_run *run, struct simulated_task *task,
    struct simulated_array *array, const char *metric)
{
    struct simulated_trial *trial = task->trial = calloc(1, sizeof *trial);
    if (!trial)
        return -ENOMEM;
    trial->array = array;
    if (!metric)
        trial->curve = loss_curve_draw(run->simulation->curve_seed, task->running.id);
    else if (loss_curve_parse(metric, &trial->curve) < 0)
        return -EINVAL;
    trial->end_cost = loss_curve_end_cost(&trial->curve, run->simulation->stop, task->type->epochs);
    array->best_cost = fmin(array->best_cost, trial->end_cost);
    return 0;
}

/* Seconds of work that are left when the trial reaches its next rung; not above 0: at its end. */
static double left_at_rung(const struct simulation_run *run, const struct simulated_task *task)
{
    int rung = task->trial->next_rung;
    if (rung == STOP_RUNGS_MAX)
        return 0;
    double step = (double)halving_step(run->simulation->stop, rung);
    return task->solo_s * (1 - step / task->type->epochs);
}

void simulated_trial_plan(struct simulation_run *run, struct simulated_task *task)
{
    const struct running_task *running = &task->running;
    double left_s = left_at_rung(run, task);
    if (left_s <= 0)
        return;
    double until_s = fmax(0, running->left_s - left_s) / (running->speed * running->kind_speed);
    simulation_run_wake(run, WAKE_RUNG, running->since_us + llround(until_s * (double)SECOND_US),
        running->id, task->finish_version);
}

void simulated_trial_on_rung(struct simulation_run *run, const struct sim_wakeup *wakeup)
{
    struct simulated_task *task = run->tasks[wakeup->subject];
    if (!task || task->finish_version != wakeup->version)
        return;
    int rung = task->trial->next_rung++;
    simulated_trial_plan(run, task);
    struct reading value = loss_curve_at(&task->trial->curve, run->simulation->stop, rung);
    if (!value.valid)
        return;
    struct event event = {.kind = EVENT_METRIC,
        .time_us = wakeup->time_us,
        .task = task->trial->array->id,
        .metric = {.task = task->running.id, .rung = rung, .value = value}};
    if (isnan(value.value))
        event.metric.value = READING_NONE;
    simulation_run_check(run, sim_step(run->sim, &event));
}

void simulated_trial_end(
    struct simulation_run *run, const struct simulated_task *task, const struct task *ended)
{
    struct simulated_array *array = task->trial->array;
    if (ended->state == TASK_STOPPED) {
        run->result.stopped++;
        run->result.saved_gpu_s += fmax(0, task->running.left_s) * ended->request.gpus;
    }
    if (ended->state != TASK_COMPLETED || array->is_best_kept ||
        task->trial->end_cost > array->best_cost)
        return;
    array->is_best_kept = true;
    run->result.best_kept++;
}

void simulated_arrays_free(struct simulation_run *run)
{
    for (size_t i = 0; i < run->n_arrays; i++)
        free(run->arrays[i]);
    free(run->arrays);
}
