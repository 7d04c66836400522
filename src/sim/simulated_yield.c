/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving way in the simulator: suspensions, resumptions and moves take as long as was measured
 * (core/suspension.h), by the memory that the task holds. Meanwhile it does not compute, and its
 * co-residents are not disturbed. A suspended task holds no GPU memory, a client of MPS only its
 * context. Where the core has chosen a neighbour GPU for the copy, the copy takes memory there,
 * comes and goes at the speed of NVLink, and the context stays. When the task is resumed, it takes
 * at once what it held, and then the rest, step by step. A paused one keeps its memory. An
 * allocation that finds too little memory waits, where the settings have `preload`, and is tried
 * again when the core grants it. It fails when the daemon would let it fail (preload/wait_rule.h).
 */
#include "base/clock.h"
#include "preload/wait_rule.h"
#include "sim/simulation_run.h"

static int64_t held_bytes(const struct simulation_run *run, const struct simulated_task *task)
{
    const struct place *place = &run->gpus.places[task->running.places[0]];
    return gpu_memory_of(place->memory, task->running.id);
}

static void free_memory(struct simulation_run *run, const struct simulated_task *task)
{
    for (int i = 0; i < task->running.n_places; i++)
        gpu_memory_release(run->gpus.places[task->running.places[i]].memory, task->running.id);
}

static bool is_client(const struct simulation_run *run, const struct simulated_task *task)
{
    return core_task(sim_core(run->sim), task->running.id)->run->share.sharing == SHARING_MPS;
}

/* Clients of MPS keep their contexts, all whose copy lies on a neighbour, and those of which the
 * core has decided so. */
static bool keeps_context(const struct simulation_run *run, const struct simulated_task *task)
{
    return is_client(run, task) || task->copy_bytes > 0 ||
           core_task(sim_core(run->sim), task->running.id)->run->yield.keeps_context;
}

/* What stays on each place of a suspended task. */
static int64_t context_bytes(const struct simulation_run *run, int64_t held)
{
    int64_t bytes = run->simulation->laws->context_bytes;
    return held < bytes ? held : bytes;
}

/* Returns what stays on each place. */
static int64_t leave_context(struct simulation_run *run, const struct simulated_task *task)
{
    int64_t held = held_bytes(run, task),
            stays = keeps_context(run, task) ? context_bytes(run, held) : 0;
    free_memory(run, task);
    for (int i = 0; i < task->running.n_places && stays > 0; i++)
        simulation_run_check(run, gpu_memory_take(run->gpus.places[task->running.places[i]].memory,
                                      task->running.id, stays));
    return stays;
}

/* What the task holds on each place after the steps that it has taken on all of them. */
static int64_t restored_bytes(const struct simulation_run *run, const struct simulated_task *task)
{
    int64_t bytes = 0;
    if (task->memory_steps == MEMORY_STEPS)
        return task->type->memory_bytes;
    for (int step = 0; step < task->memory_steps; step++)
        bytes += memory_step_bytes(
            task->type->memory_bytes, run->simulation->laws->context_bytes, step);
    return bytes;
}

/* Takes the memory again that the task held, on its places: what is there already is a part of it.
 * Returns 0, GPU_MEMORY_FULL with no more taken, or -ENOMEM. */
static int take_memory_again(struct simulation_run *run, struct simulated_task *task)
{
    int64_t there = held_bytes(run, task), missing = restored_bytes(run, task) - there;
    int r = 0;
    for (int i = 0; i < task->running.n_places && r == 0; i++)
        r = gpu_memory_take(run->gpus.places[task->running.places[i]].memory, task->running.id,
            missing > 0 ? missing : 0);
    if (r == GPU_MEMORY_FULL && there == 0)
        free_memory(run, task);
    return r;
}

/* What the core knows of the GPU that the task leaves or comes back to. */
static struct suspension_cost cost_on_gpu(
    const struct simulation_run *run, const struct simulated_task *task, enum suspension_way way)
{
    const struct task *yielding = core_task(sim_core(run->sim), task->running.id);
    int gpu = yielding->n_gpus ? yielding->gpus[0] : task_context_gpu(yielding);
    return *core_stop_cost(sim_core(run->sim), gpu, way);
}

/* The carrier can take all simulated tasks. */
static struct suspension_cost cost_of_host(
    const struct simulation_run *run, const struct simulated_task *task)
{
    bool is_carried = run->simulation->settings.carries_mps;
    return cost_on_gpu(run, task, is_carried ? SUSPENSION_BY_CARRIER : SUSPENSION_BY_DRIVER);
}

static struct suspension_cost cost_of(
    const struct simulation_run *run, const struct simulated_task *task)
{
    const struct suspension_cost cost = cost_of_host(run, task);
    if (task->copy_bytes)
        return cost_on_gpu(run, task, SUSPENSION_TO_NEIGHBOUR);
    return keeps_context(run, task) ? suspension_cost_of_client(&cost) : cost;
}

/* Of the bytes that the task holds, those that are copied. */
static double copied_bytes(
    const struct simulation_run *run, const struct simulated_task *task, int64_t held)
{
    return (double)(held - (keeps_context(run, task) ? context_bytes(run, held) : 0));
}

/* ---- copies on a neighbour GPU ---- */

/* Takes the memory for the copy. Without enough the copy goes to the host. */
static void take_copy(struct simulation_run *run, struct simulated_task *task)
{
    const struct task *suspended = core_task(sim_core(run->sim), task->running.id);
    int64_t held = held_bytes(run, task), bytes = held - context_bytes(run, held);
    if (!suspended->run->yield.has_neighbour || bytes < 1)
        return;
    task->copy_place = suspended->run->yield.neighbour;
    int r = gpu_memory_take(run->gpus.places[task->copy_place].memory, task->running.id, bytes);
    task->copy_bytes = r == 0 ? bytes : 0;
    simulation_run_check(run, r);
    simulation_run_check(run, sampling_plan(&run->sampling, task->copy_place));
}

void simulated_task_drop_copy(struct simulation_run *run, struct simulated_task *task)
{
    if (!task->copy_bytes)
        return;
    gpu_memory_release(run->gpus.places[task->copy_place].memory, task->running.id);
    simulation_run_check(run, sampling_plan(&run->sampling, task->copy_place));
    task->copy_bytes = 0;
}

static void stop_computing(struct simulation_run *run, struct simulated_task *task)
{
    task->finish_version++;
    simulated_task_prepare_change(run, &task->running);
    simulated_gpus_stop_task(&run->gpus, &task->running, sim_now_us(run->sim));
}

static void compute_again(struct simulation_run *run, struct simulated_task *task)
{
    simulated_task_prepare_change(run, &task->running);
    simulation_run_check(
        run, simulated_gpus_add_task(&run->gpus, &task->running, sim_now_us(run->sim)));
}

/* ---- effects ---- */

static void begin_suspension(
    struct simulation_run *run, struct simulated_task *task, bool is_move, int64_t now_us)
{
    if (!is_move)
        take_copy(run, task);
    double bytes = copied_bytes(run, task, held_bytes(run, task));
    const struct suspension_cost cost = cost_of(run, task);
    stop_computing(run, task);
    task->places_stepped = 0; /* what it has of the present step on some places is not restored */
    task->step_us = TIME_NEVER;
    task->yield_us = suspension_time_us(&cost, bytes);
    if (is_move)
        task->yield_us += resumption_time_us(&cost, (double)restored_bytes(run, task));
    simulation_run_wake(
        run, WAKE_YIELDED, now_us + task->yield_us, task->running.id, task->attempt);
}

static void begin_resumption(
    struct simulation_run *run, struct simulated_task *task, const struct task *resumed)
{
    const struct suspension_cost cost = cost_of(run, task);
    task->running.places = resumed->gpus;
    task->running.n_places = resumed->n_gpus;
    int64_t there = held_bytes(run, task);
    int r = take_memory_again(run, task);
    simulation_run_check(run, r);
    task->is_refused = r == GPU_MEMORY_FULL;
    task->yield_us = resumption_time_us(&cost, (double)(restored_bytes(run, task) - there));
    simulation_run_wake(
        run, WAKE_YIELDED, sim_now_us(run->sim) + task->yield_us, resumed->id, task->attempt);
}

/* The copy goes from the neighbour to the host; or the driver takes the context. */
static void begin_relocation(struct simulation_run *run, struct simulated_task *task)
{
    const struct suspension_cost cost = cost_of_host(run, task);
    task->yield_us = suspension_time_us(&cost, (double)task->copy_bytes);
    simulation_run_wake(
        run, WAKE_YIELDED, sim_now_us(run->sim) + task->yield_us, task->running.id, task->attempt);
}

void simulated_task_yield(
    void *context, struct sim *sim, const struct task *yielding, enum effect_kind effect)
{
    struct simulation_run *run = context;
    struct simulated_task *task = run->tasks[yielding->id];
    switch (effect) {
    case EFFECT_SUSPEND:
        begin_suspension(run, task, false, sim_now_us(sim));
        break;
    case EFFECT_MOVE: /* the list of GPUs begins with those that the task leaves */
        task->running.places = yielding->gpus;
        begin_suspension(run, task, true, sim_now_us(sim));
        break;
    case EFFECT_RESUME:
        begin_resumption(run, task, yielding);
        break;
    case EFFECT_RELOCATE:
        begin_relocation(run, task);
        break;
    case EFFECT_PAUSE:
        stop_computing(run, task);
        simulated_task_begin_probe(run, yielding);
        break;
    case EFFECT_CONTINUE:
        compute_again(run, task);
        break;
    default: /* EFFECT_GRANT_MEMORY, EFFECT_DENY_MEMORY */
        task->is_refused = effect == EFFECT_DENY_MEMORY;
        simulated_task_plan_memory_step(run, task, sim_now_us(sim));
    }
}

/* ---- answers ---- */

static void answer_suspended(struct simulation_run *run, struct simulated_task *task)
{
    struct event event = {.kind = EVENT_SUSPENDED,
        .time_us = sim_now_us(run->sim),
        .task = task->running.id,
        .yielded.took_us = task->yield_us};
    int64_t bytes = held_bytes(run, task);
    if (bytes > 0)
        event.yielded.bytes = reading_of((double)bytes);
    int64_t stays = leave_context(run, task);
    if (stays > 0)
        event.yielded.context_bytes = reading_of((double)stays);
    if (task->copy_bytes)
        event.yielded.copy_bytes = reading_of((double)task->copy_bytes);
    simulated_task_plan_samples(run, &task->running);
    task->running.places = NULL;
    task->running.n_places = 0;
    simulation_run_check(run, sim_step(run->sim, &event));
}

static void answer_relocated(struct simulation_run *run, struct simulated_task *task)
{
    struct event event = {.kind = EVENT_RELOCATED,
        .time_us = sim_now_us(run->sim),
        .task = task->running.id,
        .yielded.took_us = task->yield_us};
    int gpu = task_context_gpu(core_task(sim_core(run->sim), task->running.id));
    if (task->copy_bytes)
        simulated_task_drop_copy(run, task);
    else if (gpu >= 0) {
        gpu_memory_release(run->gpus.places[gpu].memory, task->running.id);
        simulation_run_check(run, sampling_plan(&run->sampling, gpu));
    }
    simulation_run_check(run, sim_step(run->sim, &event));
}

static void answer_failed(struct simulation_run *run, struct simulated_task *task)
{
    struct event event = {.kind = EVENT_SUSPENSION_FAILED,
        .time_us = sim_now_us(run->sim),
        .task = task->running.id,
        .suspension_failed = {SUSPENSION_NO_MEMORY, true}};
    task->running.places = NULL;
    task->running.n_places = 0;
    simulation_run_check(run, sim_step(run->sim, &event));
}

/* The task computes on its places: they are the core's list of its GPUs, as in an attempt that
 * starts. */
static void answer_running(
    struct simulation_run *run, struct simulated_task *task, enum event_kind kind)
{
    struct event event = {.kind = kind,
        .time_us = sim_now_us(run->sim),
        .task = task->running.id,
        .yielded.took_us = task->yield_us};
    simulation_run_check(run, sim_step(run->sim, &event));
    if (task->waits) { /* its allocation is tried again */
        task->waits = false;
        event.kind = EVENT_MEMORY_WAIT_END;
        simulation_run_check(run, sim_step(run->sim, &event));
    }
    if (core_task(sim_core(run->sim), event.task)->state != TASK_RUNNING)
        return;
    if (task->memory_steps > 0) /* else it computes from its first step on */
        compute_again(run, task);
    if (task->memory_steps < MEMORY_STEPS)
        simulated_task_plan_memory_step(run, task, event.time_us);
}

static void answer_moved(
    struct simulation_run *run, struct simulated_task *task, const struct task *moving)
{
    free_memory(run, task);
    simulated_task_plan_samples(run, &task->running);
    task->running.places = moving->run->yield.to_gpus;
    int r = take_memory_again(run, task);
    simulation_run_check(run, r);
    if (r == GPU_MEMORY_FULL) {
        answer_failed(run, task);
        return;
    }
    /* The core copies the list of the destination into its list of GPUs, which does not move. */
    task->running.places = moving->gpus;
    answer_running(run, task, EVENT_MOVED);
}

void simulated_task_on_yielded(struct simulation_run *run, const struct sim_wakeup *wakeup)
{
    struct simulated_task *task = run->tasks[wakeup->subject];
    if (!task || task->attempt != wakeup->version)
        return; /* of an attempt that has ended */
    const struct task *yielding = core_task(sim_core(run->sim), wakeup->subject);
    if (yielding->run->yield.is_relocating)
        answer_relocated(run, task);
    else if (yielding->state == TASK_SUSPENDING)
        answer_suspended(run, task);
    else if (yielding->state == TASK_MOVING)
        answer_moved(run, task, yielding);
    else if (task->is_refused)
        answer_failed(run, task);
    else {
        simulated_task_drop_copy(run, task);
        answer_running(run, task, EVENT_RESUMED);
    }
}

/* ---- waiting for memory ---- */

/* One that has waited and was denied does not wait again. */
bool simulated_task_may_wait(
    const struct simulation_run *run, const struct simulated_task *task, int64_t bytes)
{
    struct wait_case wait = {.bytes = (uint64_t)bytes, .bound_ms = WAIT_BOUND_MS};
    if (task->waits) { /* it was granted, and has failed again */
        wait.waited_ms = (uint64_t)((sim_now_us(run->sim) - task->wait_us) / MS_US);
        wait.retries = (uint32_t)task->retries + 1;
    }
    return run->simulation->settings.preload && !task->is_refused && !wait_rule_why_fails(&wait);
}

static void plan_end_of_wait(struct simulation_run *run, const struct simulated_task *task)
{
    simulation_run_wake(run, WAKE_WAITED, sim_now_us(run->sim) + WAIT_BOUND_MS * MS_US,
        task->running.id, task->attempt);
}

void simulated_task_wait_for_memory(
    struct simulation_run *run, struct simulated_task *task, int64_t bytes)
{
    struct event event = {.kind = EVENT_MEMORY_WAIT,
        .time_us = sim_now_us(run->sim),
        .task = task->running.id,
        .memory_wait = {bytes, task->waits}};
    task->retries = task->waits ? task->retries + 1 : 0;
    if (!task->waits) {
        task->waits = true;
        task->wait_us = event.time_us;
        plan_end_of_wait(run, task);
    }
    if (task->memory_steps > 0)
        stop_computing(run, task);
    simulation_run_check(run, sim_schedule_event(run->sim, &event));
}

/* While the task is suspended or paused the time does not count. */
void simulated_task_on_waited(struct simulation_run *run, const struct sim_wakeup *wakeup)
{
    struct simulated_task *task = run->tasks[wakeup->subject];
    int64_t now_us = sim_now_us(run->sim);
    if (!task || task->attempt != wakeup->version || !task->waits ||
        now_us - task->wait_us < WAIT_BOUND_MS * MS_US)
        return; /* of a wait that has ended */
    if (core_task(sim_core(run->sim), wakeup->subject)->state != TASK_RUNNING) {
        plan_end_of_wait(run, task);
        return;
    }
    struct event event = {
        .kind = EVENT_MEMORY_WAIT_END, .time_us = now_us, .task = task->running.id};
    task->is_refused = true;
    simulation_run_check(run, sim_step(run->sim, &event));
    simulated_task_plan_memory_step(run, task, now_us);
}
