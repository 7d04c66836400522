/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an attempt:
 *
 *   start ---- memory step 0 ---- memory steps 1 .. MEMORY_STEPS - 1 ----
 *              (computes from here on)                                   \
 *                 |  memory is full                                       finish
 *                 v                                                         |
 *              end: FAILURE_GPU_OOM                            end: FAILURE_NONE
 *
 * When it finishes depends on its speed, which changes with its co-residents: each change
 * makes a new plan of the finish, and the plan before is ignored.
 * */
#include <errno.h>
#include <math.h>
#include <signal.h>

#include "base/clock.h"
#include "sim/simulation_run.h"

/* ---- the end ---- */

static void end_attempt(
    struct simulation_run *run, struct simulated_task *task, struct task_exit exit)
{
    struct event event = {.kind = EVENT_EXITED,
        .time_us = sim_now_us(run->sim),
        .task = task->running.id,
        .exited = exit};
    task->attempt = 0;
    task->finish_version++;
    simulated_task_prepare_change(run, &task->running);
    simulated_gpus_remove_task(&run->gpus, &task->running, event.time_us);
    simulated_task_drop_copy(run, task);
    run->result.oom += exit.failure == FAILURE_GPU_OOM;
    simulation_run_check(run, sim_step(run->sim, &event));
    simulated_task_forget_if_done(run, event.task);
}

void simulated_task_kill(void *context, struct sim *sim, const struct task *killed)
{
    struct simulation_run *run = context;
    bool is_expected = killed->ending == FAILURE_REQUEUED || killed->ending == FAILURE_STOPPED;
    if (!run->tasks[killed->id]->service && !run->n_stuck && !is_expected)
        simulation_run_check(run, -ENOTSUP);
    simulation_run_wake(run, WAKE_KILL, sim_now_us(sim), killed->id, killed->attempts);
}

void simulated_task_on_kill(struct simulation_run *run, const struct sim_wakeup *wakeup)
{
    struct simulated_task *task = run->tasks[wakeup->subject];
    struct task_exit exit = {.code = -1, .signal = SIGTERM};
    if (!task || task->attempt != wakeup->version)
        return;
    exit.failure = core_task(sim_core(run->sim), wakeup->subject)->ending;
    end_attempt(run, task, exit);
}

void simulated_task_on_finish(struct simulation_run *run, const struct sim_wakeup *wakeup)
{
    struct simulated_task *task = run->tasks[wakeup->subject];
    if (task && task->finish_version == wakeup->version)
        end_attempt(run, task, (struct task_exit){.failure = FAILURE_NONE});
}

/* ---- memory ---- */

static int64_t next_bytes(const struct simulation_run *run, const struct simulated_task *task)
{
    return gpu_memory_rounded(memory_step_bytes(
        task->type->memory_bytes, run->simulation->laws->context_bytes, task->memory_steps));
}

/* Takes the next memory step on each place, in order; on those that have it already, no more. So a
 * task that waits on one GPU keeps its memory on the others. Returns 0, GPU_MEMORY_FULL or -ENOMEM.
 */
static int take_memory(struct simulation_run *run, struct simulated_task *task)
{
    int64_t bytes = next_bytes(run, task);
    int r = 0;
    while (r == 0 && task->places_stepped < task->running.n_places) {
        struct place *place = &run->gpus.places[task->running.places[task->places_stepped]];
        r = bytes > 0 ? gpu_memory_take(place->memory, task->running.id, bytes) : 0;
        task->places_stepped += r == 0;
    }
    return r;
}

/* At its time after the start, or at once if the task waited or was stopped until after that. */
static void schedule_memory_step(struct simulation_run *run, struct simulated_task *task)
{
    double due_s = gpu_memory_due_s(run->simulation->laws, task->solo_s, task->memory_steps);
    int64_t due_us = task->start_us + llround(due_s * (double)SECOND_US);
    int64_t now_us = sim_now_us(run->sim);
    simulated_task_plan_memory_step(run, task, due_us > now_us ? due_us : now_us);
}

void simulated_task_on_memory_step(struct simulation_run *run, const struct sim_wakeup *wakeup)
{
    struct simulated_task *task = run->tasks[wakeup->subject];
    if (!task || task->attempt != wakeup->version)
        return; /* of an attempt that has ended */
    if (task->step_us != wakeup->time_us)
        return; /* it was suspended meanwhile, or has taken the step */
    task->step_us = TIME_NEVER;
    int r = task->is_refused ? GPU_MEMORY_FULL : take_memory(run, task);
    simulation_run_check(run, r);
    int64_t bytes = next_bytes(run, task);
    if (r == GPU_MEMORY_FULL && simulated_task_may_wait(run, task, bytes)) {
        simulated_task_wait_for_memory(run, task, bytes);
        return;
    }
    if (r == GPU_MEMORY_FULL) {
        end_attempt(run, task, (struct task_exit){.failure = FAILURE_GPU_OOM, .code = 1});
        return;
    }
    bool goes_on = task->waits && task->memory_steps > 0;
    task->waits = false;
    task->places_stepped = 0;
    if (task->memory_steps == 0 || goes_on) {
        simulated_task_prepare_change(run, &task->running);
        simulation_run_check(
            run, simulated_gpus_add_task(&run->gpus, &task->running, sim_now_us(run->sim)));
        task->kind_speed = task->running.kind_speed;
    }
    simulated_task_plan_samples(run, &task->running);
    if (++task->memory_steps < MEMORY_STEPS)
        schedule_memory_step(run, task);
}

/* ---- the start ---- */

/* The task's demand on this kind of GPU: the catalogue gives the power of the whole GPU, the model
 * counts it above that of a GPU in use without load. */
static struct demand demand_on(const struct gpu_kind *kind, const struct sim_task *type)
{
    struct demand demand = type->demand;
    if (!isnan(demand.power_w))
        demand.power_w = fmax(0, demand.power_w - kind->awake_w);
    demand_complete(&demand, kind->work_w);
    return demand;
}

void simulated_task_start(void *context, struct sim *sim, const struct task *started)
{
    struct simulation_run *run = context;
    const struct cluster *cluster = run->simulation->cluster;
    struct simulated_task *task = run->tasks[started->id];
    struct event event = {.kind = EVENT_STARTED,
        .time_us = sim_now_us(sim),
        .task = started->id,
        .started.has_library = run->simulation->settings.preload};
    task->running.places = started->gpus;
    task->running.n_places = started->n_gpus;
    task->running.mps = started->run->share.sharing == SHARING_MPS;
    task->running.cap = started->run->share.thread_percent / 100.0;
    task->running.left_s = task->solo_s;
    task->running.mix_name = task->service ? NULL : task->type->name;
    task->running.reference_speed = cluster_fastest(cluster, task->type->gpu_kind);
    if (started->n_gpus > 0)
        task->running.demand = demand_on(
            cluster->gpus[cluster->places[started->gpus[0]].gpu], task->type);
    task->start_us = sim_now_us(sim);
    if (task->service)
        simulated_service_start(run, task);
    task->attempt = started->attempts;
    task->running.delay_factor = task->service ? 1 : simulated_delay_factor(run, task->type);
    task->memory_steps = task->places_stepped = 0;
    task->waits = task->is_refused = false;
    simulation_run_check(run, sim_schedule_event(sim, &event));
    simulated_task_plan_samples(run, &task->running);
    schedule_memory_step(run, task);
    simulated_task_begin_speeds(run, task);
}
