/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "policy/policy.h"
#include "sim/arrivals.h"
#include "sim/bound.h"
#include "sim/chance.h"
#include "sim/driver.h"
#include "sim/farm.h"
#include "sim/records.h"
#include "sim/trace.h"

#define SAMPLE_US SECOND_US
/* The core trusts the mean over a mix of tasks alone from so many samples of it on. */
#define MIX_SAMPLES 3
/* How far apart samples are that are made up for, or are there for the mean over the window alone.
 */
#define MEAN_US (3 * SAMPLE_US)
/* A mean that near to the present activity tells as much, unless the limit of the conditions is
 * between them. */
#define MEAN_NEAR   0.1
#define REMARKS_MAX 20

/* Events of this world's own. */
enum { WAKE_ARRIVAL = EVENT_KINDS, WAKE_PART, WAKE_FINISH, WAKE_SAMPLE };

struct run_task {
    struct job job;
    const struct sim_task *task;
    int64_t start_us;
    double solo_s;
    int attempt;  /* at work: of which attempt; 0 otherwise */
    int parts;    /* of its memory, taken */
    int finishes; /* scheduled so far: only the last one counts */
};

struct run {
    const struct simulation *simulation;
    struct sim *sim;
    struct farm farm;
    struct timeline timeline;
    struct arrivals arrivals;
    struct arrival next;
    struct run_task **tasks; /* by id, from 1; NULL once they have ended */
    uint64_t n_tasks, room;
    struct look {
        int64_t next_us, last_us;
    } * looks;                  /* by place */
    int looking;                /* the place that is looked at, or -1 */
    const struct job *changing; /* who comes or goes */
    struct task_memory *seen;
    int seen_room;

    bool *may_start; /* by task of the catalogue: known that it may */
    struct bound bound;
    struct simulation_result result;
    int64_t first_us, last_us;
    int64_t wait_us, exec_us, jct_us;
    uint64_t living;
    struct fault *fault;
    int broken; /* -errno: the run cannot go on */
};

static void breaks(struct run *run, int r)
{
    if (r < 0 && run->broken == 0)
        run->broken = r;
}

static void wake(struct run *run, int kind, int64_t time_us, uint64_t subject, int of)
{
    struct event event = {
        .kind = (enum event_kind)kind, .time_us = time_us, .task = subject, .exited.code = of};
    breaks(run, sim_at(run->sim, &event));
}

/* ---- looking at GPUs ---- */

static int64_t next_look_us(int64_t time_us)
{
    return (time_us + SAMPLE_US - 1) / SAMPLE_US * SAMPLE_US;
}

static void look_at(struct run *run, int place, int64_t time_us)
{
    time_us = next_look_us(time_us);
    if (run->simulation->every_second || run->looks[place].next_us <= time_us)
        return;
    run->looks[place].next_us = time_us;
    wake(run, WAKE_SAMPLE, time_us, (uint64_t)place, 0);
}

/*
 * Something has happened there: the next look tells of it, which may be now. Places are looked at
 * in order: what follows from a look at one comes too late for those before it.
 */
static void touch(struct run *run, int place)
{
    look_at(run, place, sim_now_us(run->sim) + (place <= run->looking));
}

static bool list_memory(struct run *run, const struct place *place, struct core_sample *sample)
{
    if (place->n_seats > run->seen_room) {
        int room = place->n_seats * 2;
        struct task_memory *seen = realloc(run->seen, (size_t)room * sizeof *seen);
        if (!seen)
            return false;
        run->seen = seen;
        run->seen_room = room;
    }
    for (int i = 0; i < place->n_seats; i++) {
        uint64_t id = place->seats[i].job->id;
        run->seen[i] = (struct task_memory){
            id, reading_of((double)gpu_memory_of(&place->memory, id))};
    }
    sample->tasks = run->seen;
    sample->n_tasks = place->n_seats;
    return true;
}

static struct event sample_of(struct run *run, int i)
{
    const struct place *place = &run->farm.places[i];
    double smact = place->smact / run->simulation->cluster->places[i].sms;
    struct event event = {.kind = EVENT_SAMPLE, .time_us = sim_now_us(run->sim)};
    event.sample = (struct core_sample){.gpu = i,
        .mem_used_bytes = reading_of((double)place->memory.used_bytes),
        .smact = reading_of(smact),
        .foreign_processes = reading_of(0)};
    if (!list_memory(run, place, &event.sample))
        breaks(run, -ENOMEM);
    return event;
}

static void feed_sample(struct run *run, int i)
{
    struct event event = sample_of(run, i);
    run->looking = i;
    run->looks[i].last_us = event.time_us;
    breaks(run, sim_feed(run->sim, &event));
    run->looking = -1;
}

/* The looks that were not worth it while all stayed as it was: the mean over the window needs them
 * now that it changes.
 */
static void make_up_for(struct run *run, int i)
{
    struct look *seen = &run->looks[i];
    if (run->simulation->every_second || core_view(sim_core(run->sim))->gpus[i].whole_for)
        return;
    int64_t now_us = sim_now_us(run->sim), first_us = now_us - run->simulation->settings.window_us;
    struct event event = sample_of(run, i);
    event.time_us = next_look_us(first_us > seen->last_us ? first_us : seen->last_us + SAMPLE_US);
    for (; event.time_us < now_us && !run->broken; event.time_us += MEAN_US) {
        breaks(run, core_apply(sim_core(run->sim), &event));
        seen->last_us = event.time_us;
    }
}

/* Until when a hold-off lasts that nothing else ends, or INT64_MAX. */
static int64_t settles_us(const struct core_settings *settings, const struct gpu_view *gpu)
{
    int64_t earliest = INT64_MAX;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        int64_t at_most = resident->held_us + settings->settle_max_us;
        int64_t risen = resident->risen ? resident->grew_us + settings->settle_us : at_most;
        int64_t settles = risen < at_most ? risen : at_most;
        if (!resident->settled && settles < earliest)
            earliest = settles;
    }
    return earliest;
}

static bool mean_tells(const struct run *run, int i)
{
    double mean = core_view(sim_core(run->sim))->gpus[i].smact_level.value;
    double now = run->farm.places[i].smact / run->simulation->cluster->places[i].sms;
    double max = run->simulation->settings.conditions.smact_max;
    return fabs(mean - now) < MEAN_NEAR && (mean > max) == (now > max);
}

static void look(struct run *run, int i)
{
    int64_t now_us = sim_now_us(run->sim);
    const struct gpu_view *gpu = &core_view(sim_core(run->sim))->gpus[i];
    if (run->looks[i].next_us != now_us)
        return; /* an earlier look took its place */
    run->looks[i].next_us = INT64_MAX;
    feed_sample(run, i);
    int64_t settles = settles_us(&run->simulation->settings, gpu);
    if (gpu->whole_for)
        return; /* nobody else may come: nothing but its end is of interest */
    if (gpu->mix_since_us > now_us - (MIX_SAMPLES - 1) * SAMPLE_US && gpu->n_residents)
        look_at(run, i, now_us + SAMPLE_US);
    if (!mean_tells(run, i))
        look_at(run, i, now_us + MEAN_US);
    if (settles != INT64_MAX)
        look_at(run, i, settles > now_us ? settles : now_us + SAMPLE_US);
}

static void look_at_all(struct run *run)
{
    for (int i = 0; i < run->simulation->cluster->n_places && !run->broken; i++)
        feed_sample(run, i);
    if (run->living || run->next.task)
        wake(run, WAKE_SAMPLE, sim_now_us(run->sim) + SAMPLE_US, 0, 0);
}

/* ---- tasks ---- */

static bool is_on(const struct job *job, int place)
{
    for (int i = 0; i < job->n_places; i++)
        if (job->places[i] == place)
            return true;
    return false;
}

/* The activity of a place changes by what happens elsewhere, to a task that is there too. */
static void disturb(struct run *run, int place)
{
    make_up_for(run, place);
    touch(run, place);
}

/* Somebody is about to come to its places, or to go. */
static void announce(struct run *run, const struct job *job)
{
    run->changing = job;
    for (int i = 0; i < job->n_places; i++) {
        if (run->farm.places[job->places[i]].n_seats)
            make_up_for(run, job->places[i]);
        touch(run, job->places[i]);
    }
}

static void on_speed(void *context, struct job *job)
{
    struct run *run = context;
    struct run_task *task = (struct run_task *)job;
    double seconds = fmax(0, job->left_s) / job->speed;
    wake(run, WAKE_FINISH, sim_now_us(run->sim) + llround(seconds * (double)SECOND_US), job->id,
        ++task->finishes);
    for (int i = 0; i < job->n_places; i++)
        if (!is_on(run->changing, job->places[i]))
            disturb(run, job->places[i]);
}

static void touch_all(struct run *run, const struct job *job)
{
    for (int i = 0; i < job->n_places; i++)
        touch(run, job->places[i]);
}

static void forget(struct run *run, struct run_task *task)
{
    const struct task *ended = core_task(sim_core(run->sim), task->job.id);
    bool completed = ended->state == TASK_COMPLETED;
    *(completed ? &run->result.completed : &run->result.failed) += 1;
    run->wait_us += ended->waited_us;
    run->exec_us += ended->executed_us;
    run->jct_us += ended->ended_us - ended->submitted_us;
    run->last_us = ended->ended_us;
    if (run->simulation->tasks_out)
        task_rows_add(run->simulation->tasks_out, ended, task->task->name);
    run->living--;
    run->tasks[task->job.id] = NULL;
    core_forget(sim_core(run->sim), task->job.id);
    free(task);
}

/* The attempt is over. */
static void end_attempt(struct run *run, struct run_task *task, enum failure_class failure)
{
    struct event event = {
        .kind = EVENT_EXITED, .time_us = sim_now_us(run->sim), .task = task->job.id};
    event.exited = (struct task_exit){.failure = failure, .code = failure != FAILURE_NONE};
    task->attempt = 0;
    task->finishes++;
    announce(run, &task->job);
    farm_leave(&run->farm, &task->job, event.time_us);
    run->result.oom += failure == FAILURE_GPU_OOM;
    breaks(run, sim_feed(run->sim, &event));
    const struct task *now = core_task(sim_core(run->sim), event.task);
    if (now && task_state_is_done(now->state))
        forget(run, task);
}

static int take_part(struct run *run, struct run_task *task)
{
    int64_t bytes = memory_step_bytes(
        task->task->memory_bytes, run->simulation->laws->context_bytes, task->parts);
    int r = 0;
    for (int i = 0; i < task->job.n_places && r == 0 && bytes > 0; i++)
        r = gpu_memory_take(&run->farm.places[task->job.places[i]].memory, task->job.id, bytes);
    return r;
}

static void schedule_part(struct run *run, struct run_task *task)
{
    double due_s = gpu_memory_due_s(run->simulation->laws, task->solo_s, task->parts);
    wake(run, WAKE_PART, task->start_us + llround(due_s * (double)SECOND_US), task->job.id,
        task->attempt);
}

/* It asks for more memory; with the first of it, it begins to compute. */
static void ask_for_memory(struct run *run, struct run_task *task)
{
    int r = take_part(run, task);
    breaks(run, r);
    if (r == GPU_MEMORY_FULL) {
        end_attempt(run, task, FAILURE_GPU_OOM);
        return;
    }
    if (task->parts == 0) {
        announce(run, &task->job);
        breaks(run, farm_join(&run->farm, &task->job, sim_now_us(run->sim)));
    }
    touch_all(run, &task->job);
    if (++task->parts < MEMORY_STEPS)
        schedule_part(run, task);
}

static void complete_demand(struct run *run, struct run_task *task)
{
    const struct cluster *cluster = run->simulation->cluster;
    const struct gpu_kind *kind = cluster->gpus[cluster->places[task->job.places[0]].gpu];
    task->job.demand = task->task->demand;
    task->job.demand.power_w = fmax(0, task->job.demand.power_w - kind->awake_w);
    if (isnan(task->task->demand.power_w))
        task->job.demand.power_w = NAN;
    demand_complete(&task->job.demand, kind->work_w);
}

static void on_start(void *context, struct sim *sim, const struct task *started)
{
    struct run *run = context;
    struct run_task *task = run->tasks[started->id];
    struct event event = {.kind = EVENT_STARTED, .time_us = sim_now_us(sim), .task = started->id};
    task->job.places = started->gpus;
    task->job.n_places = started->n_gpus;
    task->job.mps = started->share.sharing == SHARING_MPS;
    task->job.cap = started->share.thread_percent / 100.0;
    task->job.left_s = task->solo_s;
    task->start_us = sim_now_us(sim);
    task->attempt = started->attempts;
    task->parts = 0;
    complete_demand(run, task);
    breaks(run, sim_at(sim, &event));
    touch_all(run, &task->job);
    schedule_part(run, task);
}

/* Nothing here ends a task before its time. */
static void on_kill(void *context, struct sim *sim, const struct task *task)
{
    breaks(context, -ENOTSUP);
}

/* ---- arrivals ---- */

static struct run_task *new_task(struct run *run, const struct sim_task *of)
{
    if (run->n_tasks + 1 >= run->room) {
        uint64_t room = run->room ? run->room * 2 : 256;
        struct run_task **tasks = realloc(run->tasks, room * sizeof *tasks);
        if (!tasks)
            return NULL;
        run->tasks = tasks;
        run->room = room;
    }
    struct run_task *task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    uint64_t seed = run->simulation->seed;
    task->job.id = ++run->n_tasks;
    task->task = of;
    task->solo_s = of->solo_s *
                   (seed ? exp(run->simulation->laws->spread * chance_normal(seed, task->job.id))
                         : 1);
    return run->tasks[task->job.id] = task;
}

static struct reading maybe(double value)
{
    return isnan(value) ? READING_NONE : reading_of(value);
}

/* As an estimator would say it that errs: by another factor for every task, the same for the same
 * seed. */
static struct need misjudged(const struct run *run, const struct need *need)
{
    double factor = exp(run->simulation->need_error *
                        chance_normal(~run->simulation->resample, run->result.submitted));
    return (struct need){NEED_ESTIMATED, (int64_t)((double)need->bytes * factor)};
}

static struct task_request request_for(const struct run *run, const struct sim_task *task)
{
    const struct simulation *simulation = run->simulation;
    bool shares = simulation->settings.policy != &policy_exclusive;
    struct task_request request = {.gpus = task->gpus,
        .sharing = shares ? simulation->sharing : SHARING_STREAMS,
        .need = task->need};
    if (simulation->need_error > 0 && task->need.kind >= NEED_ESTIMATED)
        request.need = misjudged(run, &task->need);
    if (simulation->knows_activity)
        request.expect = (struct expectation){.smact = maybe(task->demand.smact),
            .gract = maybe(task->demand.gract),
            .dram = maybe(task->demand.dram)};
    if (simulation->knows_time)
        request.expect.time_us = llround(task->solo_s * (double)SECOND_US);
    return request;
}

static void leave_out(struct run *run, const struct fault *why)
{
    if (++run->result.left_out > REMARKS_MAX + 1 || !run->simulation->remarks)
        return;
    if (run->result.left_out <= REMARKS_MAX)
        fprintf(run->simulation->remarks, "%s:%" PRId64 ": left out: %s: %s\n",
            run->simulation->trace, run->arrivals.columns.number, run->next.task->name, why->text);
    else
        fprintf(run->simulation->remarks, "%s: more tasks are left out\n", run->simulation->trace);
}

/* Could it ever start here? The answer is the same for every task of a name. */
static bool may_start(struct run *run, const struct task_request *request)
{
    bool *known = &run->may_start[run->next.task - run->simulation->catalogue->tasks];
    struct fault why;
    if (*known)
        return true;
    *known = core_check_request(sim_core(run->sim), request, &why) == 0;
    if (!*known)
        leave_out(run, &why);
    return *known;
}

static void submit(struct run *run)
{
    struct event event = {.kind = EVENT_SUBMIT, .time_us = run->next.time_us};
    event.submit.request = request_for(run, run->next.task);
    if (!may_start(run, &event.submit.request))
        return;
    struct run_task *task = new_task(run, run->next.task);
    if (!task) {
        breaks(run, -ENOMEM);
        return;
    }
    if (run->result.submitted++ == 0)
        run->first_us = event.time_us;
    run->living++;
    event.task = task->job.id;
    bound_add(&run->bound, (double)event.time_us / (double)SECOND_US, task->task, task->solo_s);
    breaks(run, sim_feed(run->sim, &event));
}

static void await_next(struct run *run)
{
    run->next.task = NULL;
    int r = arrivals_next(&run->arrivals, run->fault, &run->next);
    breaks(run, r);
    if (r == 1)
        wake(run, WAKE_ARRIVAL, run->next.time_us, 0, 0);
}

/* ---- the run ---- */

static struct run_task *attempt_of(const struct run *run, const struct event *event)
{
    struct run_task *task = run->tasks[event->task];
    return task && task->attempt == event->exited.code ? task : NULL;
}

static void on_wake(void *context, struct sim *sim, const struct event *event)
{
    struct run *run = context;
    struct run_task *task;
    if (run->broken)
        return;
    if (run->simulation->cancelled && *run->simulation->cancelled) {
        breaks(run, -ECANCELED);
        return;
    }
    if (run->timeline.out)
        timeline_advance(&run->timeline, event->time_us);
    switch ((int)event->kind) {
    case WAKE_ARRIVAL:
        submit(run);
        await_next(run);
        break;
    case WAKE_PART:
        if ((task = attempt_of(run, event)))
            ask_for_memory(run, task);
        break;
    case WAKE_FINISH:
        if ((task = run->tasks[event->task]) && task->finishes == event->exited.code)
            end_attempt(run, task, FAILURE_NONE);
        break;
    case WAKE_SAMPLE:
        if (run->simulation->every_second)
            look_at_all(run);
        else
            look(run, (int)event->task);
        break;
    }
}

static void on_event(void *context, struct sim *sim, const struct event *event)
{
    const struct run *run = context;
    char name[160], line[2048];
    const struct run_task *task = event->task && event->task <= run->n_tasks
                                      ? run->tasks[event->task]
                                      : NULL;
    snprintf(name, sizeof name, "%.120s#%" PRIu64, task ? task->task->name : "", event->task);
    if (trace_format(sim_core(sim), event, name, line, sizeof line))
        fprintf(run->simulation->trace_out, "%s\n", line);
}

static void begin(struct run *run)
{
    const struct cluster *cluster = run->simulation->cluster;
    struct event gpus = {.kind = EVENT_GPUS, .gpus = {cluster->identities, cluster->n_places}};
    breaks(run, sim_at(run->sim, &gpus));
    for (int i = 0; i < cluster->n_places; i++)
        run->looks[i] = (struct look){.next_us = INT64_MAX, .last_us = -SAMPLE_US};
    for (int i = 0; i < cluster->n_places; i++)
        look_at(run, i, 0);
    if (run->simulation->every_second)
        wake(run, WAKE_SAMPLE, 0, 0, 0);
    await_next(run);
}

static int prepare(struct run *run)
{
    const struct simulation *simulation = run->simulation;
    run->bound = bound_start(simulation->cluster);
    run->looks = calloc((size_t)simulation->cluster->n_places, sizeof *run->looks);
    run->may_start = calloc((size_t)simulation->catalogue->n, sizeof *run->may_start);
    int r = farm_init(&run->farm, simulation->cluster, simulation->laws);
    run->farm.on_speed = on_speed;
    run->farm.context = run;
    if (r == 0 && simulation->timeline_out)
        r = timeline_init(&run->timeline, simulation->timeline_out, &run->farm);
    if (simulation->tasks_out)
        task_rows_begin(simulation->tasks_out);
    return run->looks && run->may_start ? r : -ENOMEM;
}

static int play(struct run *run)
{
    struct core_settings settings = run->simulation->settings;
    const struct sim_world world = {run, on_start, on_kill, on_wake};
    settings.conditions.sample_valid_us = INT64_MAX /
                                          2; /* what was seen holds until the next look */
    run->sim = sim_create(&settings, &world, run->simulation->trace_out ? on_event : NULL, run);
    if (!run->sim)
        return -ENOMEM;
    begin(run);
    int r = run->broken ? 0 : sim_run(run->sim, INT64_MAX);
    if (run->timeline.out)
        timeline_advance(&run->timeline, INT64_MAX);
    return run->broken ? run->broken : r;
}

static void sum_up(struct run *run)
{
    const struct cluster *cluster = run->simulation->cluster;
    struct simulation_result *result = &run->result;
    double ended = (double)(result->completed + result->failed), smact_s = 0, energy_j = 0;
    if (ended == 0)
        return;
    for (int i = 0; i < cluster->n_gpus; i++) {
        farm_account(&run->farm, i, run->last_us);
        smact_s += run->farm.gpus[i].smact_s;
        energy_j += run->farm.gpus[i].energy_j -
                    cluster->gpus[i]->idle_w * (double)run->first_us / (double)SECOND_US;
    }
    result->total_s = (double)(run->last_us - run->first_us) / (double)SECOND_US;
    result->avg_wait_s = (double)run->wait_us / ended / (double)SECOND_US;
    result->avg_exec_s = (double)run->exec_us / ended / (double)SECOND_US;
    result->avg_jct_s = (double)run->jct_us / ended / (double)SECOND_US;
    result->energy_mj = energy_j / 1e6;
    result->mean_smact = result->total_s > 0 ? smact_s / cluster->n_gpus / result->total_s : 0;
    result->lower_bound_s = bound_end_s(&run->bound) - (double)run->first_us / (double)SECOND_US;
}

static int explain(const struct run *run, int r, struct fault *fault)
{
    if (r == -ENOMEM)
        return fault_set(fault, ENOMEM, "out of memory");
    if (r == 0 && run->living)
        return fault_set(fault, EDEADLK,
            "%" PRIu64 " tasks never started: the settings let no GPU take them", run->living);
    return r;
}

int simulate(
    const struct simulation *simulation, struct fault *fault, struct simulation_result *ret_result)
{
    struct run run = {.simulation = simulation, .looking = -1, .fault = fault};
    int r = arrivals_open(&run.arrivals, simulation->trace, simulation->catalogue, fault);
    if (r == 0 && simulation->resample)
        r = arrivals_resample(&run.arrivals, simulation->resample, fault);
    if (r == 0)
        r = prepare(&run);
    if (r == 0)
        r = play(&run);
    r = explain(&run, r, fault);
    if (r == 0)
        sum_up(&run);
    *ret_result = run.result;
    for (uint64_t i = 1; i <= run.n_tasks; i++)
        free(run.tasks[i]);
    free(run.tasks);
    free(run.looks);
    free(run.may_start);
    free(run.seen);
    timeline_fini(&run.timeline);
    if (run.farm.cluster)
        farm_fini(&run.farm);
    arrivals_close(&run.arrivals);
    sim_destroy(run.sim);
    return r;
}
