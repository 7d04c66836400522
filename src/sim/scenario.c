/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated world of a scenario, which the virtual-clock driver runs. Inputs come due in the
 * order of the text. Those of users go to the core, which may refuse them as in the daemon; those
 * of GPUs change what the next samples report. Each second all GPUs are sampled: the memory and
 * activity of a GPU are the sums over the tasks that run there. If that is more memory than the GPU
 * has, its youngest task runs out of memory.
 */
#include "sim/scenario.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "core/probe.h"
#include "sim/event_line.h"
#include "sim/scenario_parser.h"
#include "sim/sim_driver.h"

#define SAMPLE_US   SECOND_US       /* the daemon's default */
#define RUN_MAX_US  DAY_US          /* chosen: a scenario that does not end by itself */
#define DEAF_END_US (5 * SECOND_US) /* chosen: from the signal to the end of a deaf task */

enum scenario_wakeup {
    WAKE_INPUT,  /* subject: index of the input */
    WAKE_SAMPLE, /* all GPUs */
    WAKE_FINISH, /* subject: task; version: which plan of its end */
    WAKE_YIELDED /* subject: task; version: attempt: it is suspended, resumed or moved */
};

struct scenario_run {
    struct scenario scenario;
    struct task_state_now {
        int attempt; /* the number of the running attempt; 0: none runs */
        int64_t started_us;
        int64_t left_us; /* run time left at since_us */
        int64_t since_us;
        bool computes;
        bool has_all;                /* its allocation that waited got the rest of its memory */
        bool waits;                  /* an allocation of it waits for memory */
        bool is_inactive;            /* from "idle" to "wake" */
        int64_t alone_us;            /* reports show it alone since then; 0: not */
        bool is_measured;            /* its speed alone is known */
        bool went_near;              /* at its last suspension its copy went to a neighbour GPU */
        double held_bytes;           /* at the last sample; also while it waits */
        int finish_version;          /* counts plans of its end: only the last counts */
        double resident_bytes;       /* on each GPU, when it was suspended */
        int n_context_refusals;      /* how often the driver has refused to take its context */
        int64_t yield_us;            /* how long its suspension, resumption or move takes */
    } tasks[SCENARIO_TASKS_MAX + 1]; /* by id */
    struct gpu_now {
        int64_t external_bytes;
        unsigned troubles;
    } gpus[SCENARIO_GPUS_MAX];
    struct task_memory memory[SCENARIO_TASKS_MAX]; /* scratch: the tasks of a sample */
    struct sim *sim;
    FILE *out;
    int error; /* 0, or the first -errno */
};

static void note_error(struct scenario_run *run, int r)
{
    if (r < 0 && run->error == 0)
        run->error = r;
}

static void schedule_wakeup(struct scenario_run *run, enum scenario_wakeup kind, int64_t time_us,
    uint64_t subject, int version)
{
    struct sim_wakeup wakeup = {kind, time_us, subject, version};
    note_error(run, sim_schedule_wakeup(run->sim, &wakeup));
}

/* ---- tasks ---- */

static struct event exited_event(uint64_t task, int64_t time_us, struct task_exit exit)
{
    return (struct event){.kind = EVENT_EXITED, .time_us = time_us, .task = task, .exited = exit};
}

/* The task begins to compute: plans its end. */
static void begin_computing(struct scenario_run *run, uint64_t id)
{
    struct task_state_now *task = &run->tasks[id];
    task->computes = true;
    task->since_us = sim_now_us(run->sim);
    task->finish_version++;
    if (run->scenario.tasks[id].runs_us)
        schedule_wakeup(run, WAKE_FINISH, task->since_us + task->left_us, id, task->finish_version);
}

static void stop_computing(struct scenario_run *run, uint64_t id)
{
    struct task_state_now *task = &run->tasks[id];
    if (task->computes)
        task->left_us -= sim_now_us(run->sim) - task->since_us;
    task->computes = false;
    task->finish_version++;
}

static bool is_given_library(const struct scenario_run *run, const struct task *task)
{
    return run->scenario.settings.preload && !task->request.without_library;
}

static bool has_hooks(const struct scenario_run *run, const struct task *task)
{
    return is_given_library(run, task) && !run->scenario.tasks[task->id].unhooked;
}

static void on_start(void *context, struct sim *sim, const struct task *task)
{
    struct scenario_run *run = context;
    const struct scenario_task *what = &run->scenario.tasks[task->id];
    int64_t now_us = sim_now_us(sim);
    run->tasks[task->id].started_us = now_us;
    if (what->unlaunchable) {
        struct event failed = exited_event(
            task->id, now_us, (struct task_exit){.failure = FAILURE_LAUNCH, .code = -1});
        note_error(run, sim_schedule_event(sim, &failed));
        return;
    }
    struct event started = {.kind = EVENT_STARTED,
        .time_us = now_us,
        .task = task->id,
        .started.has_library = run->scenario.settings.preload && !what->request.without_library};
    run->tasks[task->id].attempt = task->attempts;
    run->tasks[task->id].waits = run->tasks[task->id].has_all = false;
    run->tasks[task->id].held_bytes = 0;
    note_error(run, sim_schedule_event(sim, &started));
    run->tasks[task->id].left_us = what->runs_us;
    begin_computing(run, task->id);
}

/* A deaf task ignores the signal: it keeps its memory until it is killed. */
static void on_kill(void *context, struct sim *sim, const struct task *task)
{
    struct scenario_run *run = context;
    bool deaf = run->scenario.tasks[task->id].deaf;
    struct task_exit exit = {.failure = task->ending, .code = -1, .signal = deaf ? 9 : 15};
    struct event event = exited_event(task->id, sim_now_us(sim) + (deaf ? DEAF_END_US : 0), exit);
    if (!deaf)
        run->tasks[task->id].attempt = 0;
    note_error(run, sim_schedule_event(sim, &event));
}

static void finish_task(struct scenario_run *run, const struct sim_wakeup *wakeup)
{
    struct task_state_now *task = &run->tasks[wakeup->subject];
    int code = run->scenario.tasks[wakeup->subject].exit_code;
    if (!task->attempt || task->finish_version != wakeup->version)
        return; /* that attempt has ended, or was suspended meanwhile */
    task->attempt = 0;
    struct event event = exited_event(wakeup->subject, wakeup->time_us,
        (struct task_exit){.failure = code ? FAILURE_PROGRAM : FAILURE_NONE, .code = code});
    note_error(run, sim_step(run->sim, &event));
}

static double memory_taken(const struct scenario_run *run, uint64_t id, int64_t now_us)
{
    const struct scenario_task *what = &run->scenario.tasks[id];
    int64_t age_us = now_us - run->tasks[id].started_us - what->sleeps_us;
    if (run->tasks[id].waits)
        return run->tasks[id].held_bytes;
    if (run->tasks[id].has_all)
        return (double)what->takes_bytes;
    if (age_us < 0)
        return 0;
    if (what->rise_us == 0 || age_us >= what->rise_us)
        return (double)what->takes_bytes;
    return (double)what->takes_bytes * (double)age_us / (double)what->rise_us;
}

/* ---- giving way ---- */

/* The allocation that waited gets all that the task lacks, or the task fails. */
static void end_memory_wait(struct scenario_run *run, uint64_t id, bool is_granted)
{
    struct task_state_now *task = &run->tasks[id];
    task->waits = false;
    task->has_all = is_granted;
    if (is_granted) {
        begin_computing(run, id);
        return;
    }
    struct event oom = exited_event(
        id, sim_now_us(run->sim), (struct task_exit){.failure = FAILURE_GPU_OOM, .code = 1});
    task->attempt = 0;
    note_error(run, sim_schedule_event(run->sim, &oom));
}

/* Of a client of MPS, chosen: it stays on the GPU. */
#define CONTEXT_BYTES ((double)GIB)

static bool is_client(const struct task *task)
{
    return task->run->share.sharing == SHARING_MPS;
}

/* So it does of a task whose copy goes to a neighbour, or of which the core has decided so. */
static bool keeps_context(const struct scenario_run *run, const struct task *task)
{
    return is_client(task) || run->tasks[task->id].went_near || task->run->yield.keeps_context;
}

/* Can the carrier take all processes of the task? */
static bool is_carried(const struct scenario_run *run, const struct task *task)
{
    return run->scenario.settings.carries_mps && has_hooks(run, task) &&
           !run->scenario.tasks[task->id].uncarried;
}

/* What the core knows of the GPU that the task leaves or comes back to. */
static struct suspension_cost cost_of(
    const struct scenario_run *run, const struct task *task, enum effect_kind effect)
{
    const struct core *core = sim_core(run->sim);
    int gpu = task->n_gpus ? task->gpus[0] : task_context_gpu(task);
    if (task->run->yield.has_neighbour && effect != EFFECT_RELOCATE)
        return *core_stop_cost(core, gpu, SUSPENSION_TO_NEIGHBOUR);
    bool carried = is_carried(run, task);
    const struct suspension_cost *cost = core_stop_cost(
        core, gpu, carried ? SUSPENSION_BY_CARRIER : SUSPENSION_BY_DRIVER);
    return keeps_context(run, task) ? suspension_cost_of_client(cost) : *cost;
}

/* Suspending and resuming take as long as the core expects; pausing takes no time. */
static void on_yield(
    void *context, struct sim *sim, const struct task *task, enum effect_kind effect)
{
    struct scenario_run *run = context;
    struct task_state_now *state = &run->tasks[task->id];
    int64_t took_us = 0, now_us = sim_now_us(sim);
    if (effect == EFFECT_SUSPEND)
        state->went_near = task->run->yield.has_neighbour;
    double stays = keeps_context(run, task) ? CONTEXT_BYTES : 0;
    const struct suspension_cost cost = cost_of(run, task, effect);
    if (effect == EFFECT_CONTINUE)
        begin_computing(run, task->id);
    if (effect == EFFECT_PAUSE)
        stop_computing(run, task->id);
    if (effect == EFFECT_GRANT_MEMORY || effect == EFFECT_DENY_MEMORY)
        end_memory_wait(run, task->id, effect == EFFECT_GRANT_MEMORY);
    if (effect != EFFECT_SUSPEND && effect != EFFECT_RESUME && effect != EFFECT_MOVE &&
        effect != EFFECT_RELOCATE)
        return;
    if (effect == EFFECT_RELOCATE && !task->run->yield.has_neighbour) /* by the driver */
        took_us += core_stop_cost(sim_core(sim), -1, SUSPENSION_BY_CARRIER)->fixed_us;
    else if (effect == EFFECT_RELOCATE)
        took_us += suspension_time_us(&cost, fmax(0, state->resident_bytes - stays));
    else if (effect != EFFECT_RESUME) {
        state->resident_bytes = memory_taken(run, task->id, now_us);
        took_us += suspension_time_us(&cost, fmax(0, state->resident_bytes - stays));
        stop_computing(run, task->id);
    }
    if (effect == EFFECT_RESUME || effect == EFFECT_MOVE)
        took_us += resumption_time_us(&cost, fmax(0, state->resident_bytes - stays));
    state->yield_us = took_us;
    schedule_wakeup(run, WAKE_YIELDED, now_us + took_us, task->id, task->attempts);
}

/* The driver does not take the context: it stays on its GPU. */
static void fail_to_relocate(struct scenario_run *run, const struct task *task)
{
    struct event failed = {
        .kind = EVENT_SUSPENSION_FAILED, .time_us = sim_now_us(run->sim), .task = task->id};
    failed.suspension_failed.why = SUSPENSION_REFUSED;
    failed.suspension_failed.is_suspended = true;
    run->tasks[task->id].n_context_refusals++;
    note_error(run, sim_step(run->sim, &failed));
}

static void fail_to_yield(struct scenario_run *run, const struct task *task)
{
    struct event failed = {
        .kind = EVENT_SUSPENSION_FAILED, .time_us = sim_now_us(run->sim), .task = task->id};
    failed.suspension_failed.why = SUSPENSION_REFUSED;
    begin_computing(run, task->id);
    note_error(run, sim_step(run->sim, &failed));
}

/* Has an external process taken the memory that the task was to come back to? */
static bool is_memory_taken(const struct scenario_run *run, const struct task *task)
{
    bool is_taken = false;
    for (int i = 0; i < task->n_gpus && task->state == TASK_RESUMING; i++) {
        int gpu = task->gpus[i];
        double external_bytes = (double)run->gpus[gpu].external_bytes;
        is_taken |= external_bytes + run->tasks[task->id].resident_bytes >
                    (double)run->scenario.gpus[gpu].mem_total_bytes;
    }
    return is_taken;
}

/* A carrier takes the blocks away again; a process that the driver was to restore is lost. */
static void fail_to_return(struct scenario_run *run, const struct task *task)
{
    struct event failed = {
        .kind = EVENT_SUSPENSION_FAILED, .time_us = sim_now_us(run->sim), .task = task->id};
    failed.suspension_failed.why = is_carried(run, task) ? SUSPENSION_NO_MEMORY : SUSPENSION_LOST;
    failed.suspension_failed.is_suspended = true;
    note_error(run, sim_step(run->sim, &failed));
}

static void answer_yield(struct scenario_run *run, const struct sim_wakeup *wakeup)
{
    const struct task *task = core_task(sim_core(run->sim), wakeup->subject);
    struct task_state_now *state = &run->tasks[wakeup->subject];
    if (state->attempt != wakeup->version)
        return; /* it has ended meanwhile */
    if (run->scenario.tasks[task->id].unanswered && task->state == TASK_SUSPENDING)
        return;
    if (run->scenario.tasks[task->id].unsuspendable) {
        fail_to_yield(run, task);
        return;
    }
    if (task->run->yield.is_relocating &&
        state->n_context_refusals < run->scenario.tasks[task->id].context_refusals) {
        fail_to_relocate(run, task);
        return;
    }
    if (is_memory_taken(run, task)) {
        fail_to_return(run, task);
        return;
    }
    struct event event = {.kind = task->run->yield.is_relocating   ? EVENT_RELOCATED
                                  : task->state == TASK_SUSPENDING ? EVENT_SUSPENDED
                                  : task->state == TASK_RESUMING   ? EVENT_RESUMED
                                                                   : EVENT_MOVED,
        .time_us = wakeup->time_us,
        .task = task->id,
        .yielded.took_us = state->yield_us};
    if (event.kind == EVENT_SUSPENDED && state->resident_bytes >= 1)
        event.yielded.bytes = reading_of((double)(int64_t)state->resident_bytes);
    event.yielded.has_ranks = event.kind == EVENT_SUSPENDED &&
                              run->scenario.tasks[task->id].are_ranks;
    if (event.kind == EVENT_SUSPENDED && (keeps_context(run, task) || event.yielded.has_ranks))
        event.yielded.context_bytes = reading_of(
            fmin(CONTEXT_BYTES, fmax(1, state->resident_bytes)));
    if (event.kind == EVENT_SUSPENDED && task->run->yield.has_neighbour)
        event.yielded.copy_bytes = reading_of(
            fmax(1, floor(state->resident_bytes - CONTEXT_BYTES)));
    bool runs_again = event.kind == EVENT_RESUMED || event.kind == EVENT_MOVED;
    if (runs_again && !state->waits)
        begin_computing(run, task->id);
    note_error(run, sim_step(run->sim, &event));
}

/* ---- samples ---- */

static bool runs_on(const struct scenario_run *run, const struct task *task, int gpu)
{
    /* A task that is being moved still has its memory where it was: its list of GPUs has these
     * before those of its destination. */
    int n = task->run->yield.to_gpus ? task->run->yield.n_to_gpus : task->n_gpus;
    for (int i = 0; i < n; i++)
        if (task->gpus[i] == gpu)
            return run->tasks[task->id].attempt != 0;
    return false;
}

/* Do the two have the same memory? */
static bool share_memory(const struct scenario_run *run, int a, int b)
{
    const struct gpu_identity *gpus = run->scenario.gpus;
    return a == b || (gpus[a].memory_domain && gpus[a].memory_domain == gpus[b].memory_domain);
}

static bool uses_memory_of(const struct scenario_run *run, const struct task *task, int gpu)
{
    for (int i = 0; i < run->scenario.n_gpus; i++)
        if (share_memory(run, i, gpu) && runs_on(run, task, i))
            return true;
    return false;
}

/* How many contexts of the suspended task are in the memory of the GPU? */
static int count_contexts(const struct scenario_run *run, const struct task *task, int gpu)
{
    const struct task_yield *yield = &task->run->yield;
    int n = 0;
    for (int i = 0; i < yield->n_context_gpus && task_context_gpu(task) >= 0; i++)
        n += share_memory(run, yield->context_gpus[i], gpu);
    return n;
}

/* The allocation that found too little memory waits. Returns false if the task has taken none since
 * the last sample. */
static bool make_wait(struct scenario_run *run, const struct task *task)
{
    struct task_state_now *state = &run->tasks[task->id];
    double takes = (double)run->scenario.tasks[task->id].takes_bytes;
    if (state->waits || state->has_all || state->held_bytes >= takes)
        return false;
    struct event wait = {.kind = EVENT_MEMORY_WAIT,
        .time_us = sim_now_us(run->sim),
        .task = task->id,
        .memory_wait.bytes = (int64_t)(takes - state->held_bytes)};
    state->waits = true;
    stop_computing(run, task->id);
    note_error(run, sim_schedule_event(run->sim, &wait));
    return true;
}

/* Ends the youngest task of a GPU on which more memory is in use than there is, or lets its
 * allocation wait. Returns whether it did. */
static bool kill_if_full(struct scenario_run *run, int gpu, double used_bytes)
{
    struct core *core = sim_core(run->sim);
    const struct task *youngest = NULL;
    if (used_bytes <= (double)run->scenario.gpus[gpu].mem_total_bytes)
        return false;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id))
        if (uses_memory_of(run, task, gpu) && !run->tasks[task->id].waits &&
            (!youngest || task->started_us >= youngest->started_us))
            youngest = task;
    if (!youngest)
        return false;
    if (run->scenario.settings.preload && make_wait(run, youngest))
        return true;
    struct event oom = exited_event(youngest->id, sim_now_us(run->sim),
        (struct task_exit){.failure = FAILURE_GPU_OOM, .code = 1});
    run->tasks[youngest->id].attempt = 0;
    note_error(run, sim_schedule_event(run->sim, &oom));
    return true;
}

static bool has_copy_on(const struct task *task, int gpu)
{
    bool is_away = task->state == TASK_SUSPENDED || task->state == TASK_RESUMING;
    return is_away && task->run->yield.has_neighbour && task->run->yield.neighbour == gpu;
}

/* Sums memory and activity of the tasks on the GPU, and lists their memory in the sample. Returns
 * the bytes in use. */
static double sum_tasks(
    struct scenario_run *run, int gpu, struct core_sample *sample, double *ret_smact)
{
    struct core *core = sim_core(run->sim);
    double used_bytes = 0;
    int n_places = 0;
    *ret_smact = 0;
    sample->n_tasks = 0;
    for (int i = 0; i < run->scenario.n_gpus; i++) {
        used_bytes += share_memory(run, i, gpu) ? (double)run->gpus[i].external_bytes : 0;
        n_places += share_memory(run, i, gpu);
    }
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id)) {
        const struct scenario_task *what = &run->scenario.tasks[task->id];
        used_bytes += count_contexts(run, task, gpu) *
                      reading_assume(task->run->yield.context_bytes, 0);
        if (has_copy_on(task, gpu))
            used_bytes += fmax(0, run->tasks[task->id].resident_bytes - CONTEXT_BYTES);
        if (!uses_memory_of(run, task, gpu))
            continue;
        double taken = memory_taken(run, task->id, sim_now_us(run->sim));
        used_bytes += taken;
        *ret_smact += taken > 0 && run->tasks[task->id].computes
                          ? run->scenario.tasks[task->id].smact / n_places
                          : 0;
        if (runs_on(run, task, gpu))
            sample->tasks[sample->n_tasks++] = (struct task_memory){.task = task->id,
                .mem_used_bytes = reading_of(taken),
                .hooked = (taken > 0 && has_hooks(run, task)) * (1 + what->uncarried),
                .unhooked = taken > 0 && !has_hooks(run, task),
                .carried = taken > 0 && has_hooks(run, task) && run->scenario.settings.carries_mps,
                .is_inactive = run->tasks[task->id].is_inactive};
    }
    if (used_bytes <= (double)run->scenario.gpus[gpu].mem_total_bytes)
        for (int i = 0; i < sample->n_tasks; i++)
            run->tasks[sample->tasks[i].task].held_bytes = sample->tasks[i].mem_used_bytes.value;
    return used_bytes;
}

/* Fills in what the daemon would sample from a GPU with these troubles. */
static void fill_sample(
    const struct gpu_now *gpu, double used_bytes, double smact, struct core_sample *sample)
{
    unsigned troubles = gpu->troubles;
    smact = smact > 1 ? 1 : smact;
    sample->lost = troubles & GPU_TROUBLE_LOST;
    sample->faulty = troubles & GPU_TROUBLE_FAULTY;
    sample->mem_used_bytes = reading_of(used_bytes);
    sample->smact = troubles & (GPU_TROUBLE_BLIND | GPU_TROUBLE_NO_SMACT) ? READING_NONE
                                                                          : reading_of(smact);
    /* Utilisation is the time in which any kernel runs: more than the share of busy SMs. */
    sample->power_w = reading_of(SCENARIO_IDLE_W + smact * (SCENARIO_LIMIT_W - SCENARIO_IDLE_W));
    sample->pcie_bytes_per_s = reading_of(smact * SCENARIO_PCIE_BYTES);
    sample->utilisation = troubles & GPU_TROUBLE_BLIND
                              ? READING_NONE
                              : reading_of(smact > 0 ? 0.5 + smact / 2 : 0);
    sample->external_processes = troubles & GPU_TROUBLE_NO_PROCESS_LIST
                                     ? READING_NONE
                                     : reading_of(gpu->external_bytes ? 1 : 0);
    if (troubles & (GPU_TROUBLE_NO_PROCESS_LIST | GPU_TROUBLE_HIDES_PROCESSES))
        sample->n_tasks = 0;
}

/* The activity of the tasks that compute beside it there. */
static double activity_beside(const struct scenario_run *run, const struct task *task, int gpu)
{
    double beside = -run->scenario.tasks[task->id].smact;
    for (int i = 1; i <= run->scenario.n_tasks; i++) {
        const struct task *other = core_task(sim_core(run->sim), (uint64_t)i);
        bool computes = other && run->tasks[i].computes && runs_on(run, other, gpu);
        beside += computes ? run->scenario.tasks[i].smact : 0;
    }
    return beside;
}

/* As the daemon measures it: some steps after those that others had begun (core/probe.h). */
static void measure_alone(struct scenario_run *run, const struct task *task, bool is_alone)
{
    struct task_state_now *state = &run->tasks[task->id];
    int64_t now_us = sim_now_us(run->sim), step_us = run->scenario.tasks[task->id].step_us;
    int64_t probe_us = task->run->promise.probe_begun_us;
    if (!is_alone)
        state->alone_us = 0;
    else if (!state->alone_us)
        state->alone_us = now_us - probe_us <= SAMPLE_US ? probe_us : now_us;
    if (state->alone_us && now_us - state->alone_us >= PROBE_SETTLE_US + PROBE_STEPS * step_us)
        state->is_measured = true;
}

/* Reports how many times as long as alone a promised task takes. */
static void report_speed(struct scenario_run *run, const struct task *task, int gpu)
{
    double slows = run->scenario.tasks[task->id].slows;
    if (slows <= 0 || task->state != TASK_RUNNING || !runs_on(run, task, gpu))
        return;
    struct event event = {.kind = EVENT_SPEED, .time_us = sim_now_us(run->sim), .task = task->id};
    double beside = activity_beside(run, task, gpu), slowdown = 1 + slows * beside;
    int64_t step_us = run->scenario.tasks[task->id].step_us;
    if (step_us) {
        measure_alone(run, task, beside <= 0);
        event.step_us = reading_of(slowdown * (double)step_us);
    }
    if (!step_us || run->tasks[task->id].is_measured)
        event.slowdown = reading_of(slowdown);
    note_error(run, sim_schedule_event(run->sim, &event));
}

/* Reports how long the requests of a service take that runs on the GPU. */
static void report_latency(struct scenario_run *run, const struct task *task, int gpu)
{
    const struct scenario_task *what = &run->scenario.tasks[task->id];
    if (!what->latency_us || task->state != TASK_RUNNING || !runs_on(run, task, gpu))
        return;
    double beside = activity_beside(run, task, gpu);
    struct event event = {.kind = EVENT_LATENCY, .time_us = sim_now_us(run->sim), .task = task->id};
    event.p99_us = reading_of((double)what->latency_us * (1 + beside));
    note_error(run, sim_schedule_event(run->sim, &event));
}

static void report_latencies(struct scenario_run *run)
{
    for (int i = 1; i <= run->scenario.n_tasks; i++) {
        const struct task *task = core_task(sim_core(run->sim), (uint64_t)i);
        if (task && task->n_gpus > 0)
            report_latency(run, task, task->gpus[0]);
        if (task && task->n_gpus > 0)
            report_speed(run, task, task->gpus[0]);
    }
}

static void sample_gpu(struct scenario_run *run, int i)
{
    struct event event = {.kind = EVENT_SAMPLE, .time_us = sim_now_us(run->sim)};
    event.sample = (struct core_sample){.gpu = i, .tasks = run->memory};
    double smact, used_bytes = sum_tasks(run, i, &event.sample, &smact);
    if (kill_if_full(run, i, used_bytes))
        used_bytes = sum_tasks(run, i, &event.sample, &smact);
    if (run->gpus[i].troubles & GPU_TROUBLE_SILENT)
        return;
    fill_sample(&run->gpus[i], used_bytes, smact, &event.sample);
    /* Stepped at once: the list of tasks is scratch memory. */
    note_error(run, sim_step(run->sim, &event));
}

/* ---- inputs ---- */

static void change_gpu(struct scenario_run *run, const struct scenario_input *input)
{
    struct gpu_now *gpu = &run->gpus[input->change.gpu];
    gpu->troubles = (gpu->troubles & ~input->change.clears) | input->change.sets;
    if (input->change.sets_external)
        gpu->external_bytes = input->change.external_bytes;
}

static void print_why(struct scenario_run *run, uint64_t id)
{
    const struct core *core = sim_core(run->sim);
    const struct task *task = core_task(core, id);
    char text[1024], time[32];
    core_explain(core, id, sim_now_us(run->sim), text, sizeof text);
    fprintf(run->out, "t=%s why %s: %s %s%s%s\n",
        event_line_format_time(sim_now_us(run->sim), time, sizeof time),
        run->scenario.tasks[id].name, task ? task_state_word(task->state) : "unknown",
        core_reason_word(core, id), text[0] ? ": " : "", text);
}

/* A user's input. As in the daemon, a request that can never be met is refused. */
static void step_input(struct scenario_run *run, const struct event *event)
{
    struct fault fault;
    char time[32];
    const char *name = run->scenario.tasks[event->task].name;
    event_line_format_time(event->time_us, time, sizeof time);
    if (event->kind == EVENT_SUBMIT &&
        core_check_request(sim_core(run->sim), &event->submit.request, &fault) < 0) {
        fprintf(run->out, "t=%s refused %s: %s\n", time, name, fault.text);
        return;
    }
    if (event->kind == EVENT_RESERVE &&
        core_check_advance(sim_core(run->sim), &event->reserve, event->time_us, &fault) < 0) {
        fprintf(
            run->out, "t=%s refused reserve %d: %s\n", time, (int)event->reserve.id, fault.text);
        return;
    }
    int r = sim_step(run->sim, event);
    note_error(run, r);
    if (r > 0)
        fprintf(run->out, "t=%s refused %s %s\n", time, event_name(event->kind), name);
}

/* As the daemon does (daemon/reload.c). */
static void reload_settings(struct scenario_run *run, const struct core_settings *settings)
{
    const struct event tick = {.kind = EVENT_TICK, .time_us = sim_now_us(run->sim)};
    core_configure(sim_core(run->sim), settings);
    note_error(run, sim_step(run->sim, &tick));
}

static void handle_input(struct scenario_run *run, struct scenario_input *input)
{
    if (input->event.kind == EVENT_MOVE) {
        input->event.yield.gpus = &input->to_gpu;
        input->event.yield.n = 1;
    }
    if (input->event.kind == EVENT_IDLE || input->event.kind == EVENT_WAKE)
        run->tasks[input->event.task].is_inactive = input->event.kind == EVENT_IDLE;
    switch (input->kind) {
    case INPUT_EVENT:
        step_input(run, &input->event);
        break;
    case INPUT_WHY:
        print_why(run, input->event.task);
        break;
    case INPUT_GPU:
        change_gpu(run, input);
        break;
    case INPUT_RELOAD:
        reload_settings(run, &run->scenario.reloads[input->reload]);
        break;
    }
}

static void on_wake(void *context, struct sim *sim, const struct sim_wakeup *wakeup)
{
    struct scenario_run *run = context;
    switch ((enum scenario_wakeup)wakeup->kind) {
    case WAKE_INPUT:
        handle_input(run, &run->scenario.inputs[wakeup->subject]);
        break;
    case WAKE_SAMPLE:
        for (int i = 0; i < run->scenario.n_gpus; i++)
            sample_gpu(run, i);
        report_latencies(run);
        schedule_wakeup(run, WAKE_SAMPLE, wakeup->time_us + SAMPLE_US, 0, 0);
        break;
    case WAKE_FINISH:
        finish_task(run, wakeup);
        break;
    case WAKE_YIELDED:
        answer_yield(run, wakeup);
        break;
    }
}

/* ---- the trace ---- */

static void print_event(void *context, struct sim *sim, const struct event *event)
{
    struct scenario_run *run = context;
    char line[2048];
    if (event_line_format(event, run->scenario.tasks[event->task].name, line, sizeof line))
        fprintf(run->out, "%s\n", line);
}

static void print_wait(void *context, struct sim *sim, uint64_t task)
{
    struct scenario_run *run = context;
    char line[2048];
    event_line_format_wait(
        sim_core(sim), task, sim_now_us(sim), run->scenario.tasks[task].name, line, sizeof line);
    fprintf(run->out, "%s\n", line);
}

/* ---- the run ---- */

static bool is_over(const struct scenario_run *run)
{
    const struct core *core = sim_core(run->sim);
    for (int i = 0; i < run->scenario.n_inputs; i++)
        if (run->scenario.inputs[i].time_us >= sim_now_us(run->sim))
            return false;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id))
        if (!task_state_is_done(task->state))
            return false;
    return true;
}

static int run_to_end(struct scenario_run *run)
{
    const struct scenario *scenario = &run->scenario;
    struct event gpus = {
        .kind = EVENT_GPUS, .gpus = {.list = scenario->gpus, .n = scenario->n_gpus}};
    note_error(run, sim_schedule_event(run->sim, &gpus));
    schedule_wakeup(run, WAKE_SAMPLE, 0, 0, 0);
    for (int i = 0; i < scenario->n_inputs; i++)
        schedule_wakeup(run, WAKE_INPUT, scenario->inputs[i].time_us, (uint64_t)i, 0);
    int64_t until_us = scenario->run_us ? scenario->run_us : RUN_MAX_US;
    for (int64_t now_us = 0;
         !run->error && now_us <= until_us && (scenario->run_us || !is_over(run));)
        note_error(run, sim_run(run->sim, now_us += SAMPLE_US));
    return run->error;
}

int scenario_run(struct span text, const char *file_name, FILE *out, struct fault *fault)
{
    struct scenario_run *run = calloc(1, sizeof *run);
    if (!run)
        return fault_set(fault, ENOMEM, "out of memory");
    const struct sim_world world = {run, on_start, on_kill, on_wake, on_yield};
    const struct sim_observer observer = {run, print_event, print_wait};
    run->out = out;
    int r = scenario_parse(&run->scenario, text, file_name, fault);
    if (r == 0)
        r = core_settings_check(&run->scenario.settings, fault);
    if (r == 0) {
        run->sim = sim_create(&run->scenario.settings, &world, &observer);
        r = run->sim ? run_to_end(run) : -ENOMEM;
        if (r < 0)
            fault_set(fault, -r, "%s: the core: %s", file_name, strerror(-r));
    }
    sim_destroy(run->sim);
    free(run);
    return r;
}
