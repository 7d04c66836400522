/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured speeds of simulated trainings, and promises. Every five seconds each training that
 * shares its GPUs reports how many times as long as alone it takes, as the daemon does
 * (docs/promise.md). Its speed alone is known from earlier runs, or once it was alone for a window,
 * or a probe has shown it. So the scheduler's model can be another one than the truth, which the
 * simulation knows:
 *
 *     delay of a task by others = that of the model, times delay_factor, times exp(delay_error * z)
 *
 * where z is a normal random number of each kind of task. An example: with delay_factor 1.5 and no
 * random part, a mix in which the scheduler predicts 1.2 takes 1.3 times as long as alone.
 *
 * A promise is kept if from its start to its end the attempt took no more times as long as alone,
 * started in the same way; the time in which it was itself paused or suspended counts.
 */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "core/probe.h"
#include "sim/chance.h"
#include "sim/simulation_run.h"

#define WINDOW_US (5 * SECOND_US) /* as the daemon's */
#define NOISE     0.02            /* of a measured speed (docs/measured/steps.md) */

/* As the daemon's reports of a promise allow (core/state/promise.c). */
#define TOLERANCE 1.02

/* Far from those of other random numbers. */
#define SEED_OF_DELAYS   UINT64_C(0x64656c6179)
#define SEED_OF_PROMISES UINT64_C(0x70726f6d69)
#define SEED_OF_NOISE    UINT64_C(0x6e6f697365)
#define SEED_OF_SPEEDS   UINT64_C(0x737065656473)

/* Chosen: about the median of the trainings whose steps were measured (docs/measured/steps.md). */
#define STEP_US (50 * MS_US)

static double true_factor(const struct simulation *simulation)
{
    return simulation->delay_factor > 0 ? simulation->delay_factor : 1;
}

bool simulated_speeds_are_reported(const struct simulation *simulation)
{
    return simulation->promise > 0 || simulation->settings.learns_delays ||
           simulation->settings.thins_out || true_factor(simulation) != 1 ||
           simulation->delay_error > 0;
}

double simulated_delay_factor(const struct simulation_run *run, const struct sim_task *type)
{
    const struct simulation *simulation = run->simulation;
    uint64_t kind = (uint64_t)(type - simulation->catalogue->tasks);
    double z = simulation->delay_error > 0
                   ? chance_normal(SEED_OF_DELAYS ^ simulation->resample, kind)
                   : 0;
    return true_factor(simulation) * exp(simulation->delay_error * z);
}

static bool is_drawn(const struct simulation_run *run, uint64_t seed, uint64_t index, double share)
{
    const uint64_t parts = 1000000;
    uint64_t drawn = chance_below(seed ^ run->simulation->resample, index, parts);
    return (double)drawn < share * (double)parts;
}

struct reading simulated_promise(const struct simulation_run *run, uint64_t index)
{
    const struct simulation *simulation = run->simulation;
    bool is_promised = simulation->promise > 0 &&
                       is_drawn(run, SEED_OF_PROMISES, index, simulation->promise_share);
    return is_promised ? reading_of(simulation->promise) : READING_NONE;
}

/* How many times as long a task takes alone that is started in the same way, on a whole GPU. */
static double slowdown_alone(const struct simulation_run *run, const struct running_task *task)
{
    struct sharer sharer = {.demand = task->demand, .mps = task->mps, .cap = task->cap};
    return interference_alone(&run->simulation->laws->interference, 1, 1, &sharer);
}

static bool is_shared(const struct simulation_run *run, const struct running_task *task)
{
    for (int i = 0; i < task->n_places; i++)
        if (run->gpus.places[task->places[i]].n_residents > 1)
            return true;
    return false;
}

/* Counts the error of what the scheduler predicts now. */
static void note_error(struct simulation_run *run, const struct task *task, double slowdown)
{
    struct speed_now now = core_speed_now(sim_core(run->sim), task);
    int period = sim_now_us(run->sim) < HOUR_US ? 0 : 1;
    struct prediction_errors *errors = &run->errors[period];
    if (!now.speed.valid || now.speed.value <= 0)
        return;
    double error = fabs(now.alone / now.speed.value / slowdown - 1);
    simulation_run_check(run, ARRAY_APPEND(errors->list, errors->n, errors->capacity, error));
}

void simulated_task_begin_speeds(struct simulation_run *run, const struct simulated_task *task)
{
    if (simulated_speeds_are_reported(run->simulation) && !task->service &&
        task->running.n_places > 0)
        simulation_run_wake(
            run, WAKE_SPEED, sim_now_us(run->sim) + WINDOW_US, task->running.id, task->attempt);
}

static bool has_speed(const struct simulation_run *run, const struct simulated_task *task)
{
    return task->has_speed ||
           !is_drawn(run, SEED_OF_SPEEDS, task->running.id, run->simulation->speeds_unknown);
}

static void report_slowdown(
    struct simulation_run *run, const struct simulated_task *task, double slowdown)
{
    struct event event = {
        .kind = EVENT_SPEED, .time_us = sim_now_us(run->sim), .task = task->running.id};
    if (has_speed(run, task))
        event.slowdown = reading_of(
            slowdown * (1 + NOISE * chance_normal(SEED_OF_NOISE, run->n_speeds++)));
    event.step_us = reading_of(slowdown * (double)STEP_US);
    int r = sim_step(run->sim, &event);
    simulation_run_check(run, r < 0 ? r : 0);
}

void simulated_task_on_speed(struct simulation_run *run, const struct sim_wakeup *wakeup)
{
    struct simulated_task *task = run->tasks[wakeup->subject];
    if (!task || task->attempt != wakeup->version)
        return;
    const struct task *known = core_task(sim_core(run->sim), wakeup->subject);
    const struct running_task *running = &task->running;
    bool is_window = known->state == TASK_RUNNING && running->speed > 0 && task->memory_steps > 0 &&
                     wakeup->time_us - running->since_us >= WINDOW_US;
    task->has_speed |= is_window && !is_shared(run, running);
    bool is_of_use = known->request.slowdown_max.valid ||
                     (is_shared(run, running) && has_speed(run, task));
    simulated_task_begin_speeds(run, task);
    if (!is_window || !is_of_use)
        return;
    double slowdown = 1 / (running->speed * slowdown_alone(run, running));
    if (is_shared(run, running))
        note_error(run, known, slowdown);
    report_slowdown(run, task, slowdown);
}

/* ---- probes ---- */

void simulated_task_begin_probe(struct simulation_run *run, const struct task *paused)
{
    const int64_t lasts_us = PROBE_SETTLE_US + PROBE_PERIOD_US + PROBE_STEPS * STEP_US;
    uint64_t id = paused->run->yield.to_task;
    if (paused->run->yield.reason == YIELD_TO_PROBE && run->tasks[id])
        simulation_run_wake(
            run, WAKE_PROBE, sim_now_us(run->sim) + lasts_us, id, run->tasks[id]->attempt);
}

/* Of several tasks that were paused for it, the first wake-up ends it. */
void simulated_task_on_probe(struct simulation_run *run, const struct sim_wakeup *wakeup)
{
    struct simulated_task *task = run->tasks[wakeup->subject];
    if (!task || task->attempt != wakeup->version)
        return;
    const struct task *known = core_task(sim_core(run->sim), wakeup->subject);
    bool is_probed = known->state == TASK_RUNNING &&
                     wakeup->time_us < known->run->promise.probe_until_us;
    if (!is_probed || is_shared(run, &task->running))
        return;
    task->has_speed = true;
    report_slowdown(run, task, 1);
}

void simulated_probes_end(struct simulation_run *run, const struct task *ended)
{
    const struct task_yield *yield = &ended->run->yield;
    if (ended->executed_us <= 0)
        return;
    run->result.probes += yield->probes;
    run->result.probed_us += yield->probed_us;
    run->result.probes_cost = fmax(
        run->result.probes_cost, (double)yield->probed_us / (double)ended->executed_us);
}

void simulated_promise_end(
    struct simulation_run *run, const struct simulated_task *task, const struct task *ended)
{
    if (!ended->request.slowdown_max.valid || ended->state != TASK_COMPLETED)
        return;
    struct running_task uncapped = task->running;
    uncapped.cap = 0;
    double took_s = (double)(ended->ended_us - task->start_us) / (double)SECOND_US;
    double alone_s = task->solo_s * slowdown_alone(run, &uncapped) / task->kind_speed;
    double ratio = took_s / alone_s;
    run->result.promised++;
    run->result.measured += has_speed(run, task);
    run->result.kept += ratio <= ended->request.slowdown_max.value * TOLERANCE;
    run->result.longest_promised = fmax(run->result.longest_promised, ratio);
}

static int compare_errors(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static struct reading median_of(struct prediction_errors *errors)
{
    if (errors->n == 0)
        return READING_NONE;
    qsort(errors->list, errors->n, sizeof *errors->list, compare_errors);
    return reading_of(errors->list[errors->n / 2]);
}

void simulated_speeds_end(struct simulation_run *run)
{
    run->result.error_first_hour = median_of(&run->errors[0]);
    run->result.error_later = median_of(&run->errors[1]);
    for (int i = 0; run->sim && i <= SHARING_MPS; i++)
        run->result.learned[i] = core_learned_delay(sim_core(run->sim), (enum sharing)i);
}

void simulated_speeds_free(struct simulation_run *run)
{
    for (int i = 0; i < 2; i++)
        free(run->errors[i].list);
}
