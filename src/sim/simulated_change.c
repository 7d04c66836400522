/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of what a task does: its plans, and the samples that are taken around them.
 *
 * Sampling has to know of each change of activity before it happens. The places of a task that
 * starts or ends are reported by simulated_task_prepare_change; other places, where only a
 * co-resident's speed changes, by simulated_task_on_speed_changed.
 */
#include <math.h>

#include "base/clock.h"
#include "sim/simulation_run.h"

void simulated_task_plan_samples(struct simulation_run *run, const struct running_task *task)
{
    for (int i = 0; i < task->n_places; i++)
        simulation_run_check(run, sampling_plan(&run->sampling, task->places[i]));
}

static void catch_up(struct simulation_run *run, int place)
{
    if (!run->error)
        simulation_run_check(run, sampling_catch_up(&run->sampling, place));
}

/* Called before the task begins or stops to compute on its places. */
void simulated_task_prepare_change(struct simulation_run *run, const struct running_task *task)
{
    run->changing = task;
    for (int i = 0; i < task->n_places; i++) {
        int place = task->places[i];
        if (run->gpus.places[place].n_residents)
            catch_up(run, place);
        simulation_run_check(run, sampling_plan(&run->sampling, place));
    }
}

static bool uses_place(const struct running_task *task, int place)
{
    for (int i = 0; i < task->n_places; i++)
        if (task->places[i] == place)
            return true;
    return false;
}

void simulated_task_on_speed_changed(void *context, struct running_task *running)
{
    struct simulation_run *run = context;
    struct simulated_task *task = (struct simulated_task *)running;
    if (!task->service) {
        double seconds = fmax(0, running->left_s) / (running->speed * running->kind_speed);
        run->computed_us = sim_now_us(run->sim);
        simulation_run_wake(run, WAKE_FINISH,
            run->computed_us + llround(seconds * (double)SECOND_US), running->id,
            ++task->finish_version);
        if (task->trial)
            simulated_trial_plan(run, task);
    }
    for (int i = 0; i < running->n_places; i++) {
        int place = running->places[i];
        if (uses_place(run->changing, place))
            continue;
        catch_up(run, place);
        simulation_run_check(run, sampling_plan(&run->sampling, place));
    }
}

void simulated_task_plan_memory_step(
    struct simulation_run *run, struct simulated_task *task, int64_t time_us)
{
    task->step_us = time_us;
    simulation_run_wake(run, WAKE_MEMORY_STEP, time_us, task->running.id, task->attempt);
}
