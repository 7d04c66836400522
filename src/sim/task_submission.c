/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submits the tasks of the trace. Only the next arrival is in memory, so a trace may have any
 * length. When it is due, its task is submitted with the scheduler's knowledge by the settings of
 * the simulation: the memory requirement (exact, estimated, or with an error), the expected
 * activity, the expected time. With a stop rule the rows of an array are one submission.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "sim/chance.h"
#include "sim/simulation_run.h"

#define REMARKS_MAX 20 /* chosen: enough to see what is wrong with a trace */

static bool is_wanted(const struct simulation_run *run)
{
    const char *only = run->simulation->only_user;
    return !only || strcmp(intern_get(&run->arrivals.users, run->next_arrival.user), only) == 0;
}

static void read_next(struct simulation_run *run)
{
    int r;
    do {
        run->next_arrival.task = NULL;
        r = arrivals_next(&run->arrivals, run->fault, &run->next_arrival);
    } while (r == 1 && !is_wanted(run));
    simulation_run_check(run, r);
    if (r < 0)
        run->next_arrival.task = NULL;
}

static void schedule_next(struct simulation_run *run)
{
    if (run->next_arrival.task)
        simulation_run_wake(run, WAKE_ARRIVAL, run->next_arrival.time_us, 0, 0);
}

void submission_schedule_first(struct simulation_run *run)
{
    read_next(run);
    schedule_next(run);
}

/* ---- the scheduler's knowledge of a task ---- */

static struct reading reading_unless_nan(double value)
{
    return isnan(value) ? READING_NONE : reading_of(value);
}

/* The requirement as an estimator with errors reports it: each task has its own log-normal factor,
 * the same for the same seed. */
static struct need need_with_error(const struct simulation_run *run, const struct need *need)
{
    double factor = exp(run->simulation->need_error *
                        chance_normal(~run->simulation->resample, run->result.submitted));
    return (struct need){NEED_ESTIMATED, (int64_t)((double)need->bytes * factor)};
}

/* As a user submits it: with the activity that it has at its largest load, and with the priority of
 * services. */
static void request_service(const struct sim_task *type, struct task_request *request)
{
    const struct sim_service *service = type->service;
    double load = fmin(1, request_rate_max(&service->rate) * service->request_s);
    request->service = (struct service_request){true, service->p99_us};
    request->priority = PRIORITY_HIGH;
    request->takes_turns = false;
    request->time_limit_us = isfinite(type->solo_s) ? llround(type->solo_s * (double)SECOND_US) : 0;
    request->expect.smact = reading_times(request->expect.smact, load);
    request->expect.gract = reading_times(request->expect.gract, load);
    request->expect.dram = reading_times(request->expect.dram, load);
}

static struct task_request request_for(
    const struct simulation_run *run, const struct sim_task *type)
{
    const struct simulation *simulation = run->simulation;
    bool exclusive_gpus = simulation->settings.policy->exclusive_gpus;
    struct task_request request = {.gpus = type->gpus,
        .host = type->host,
        .sharing = exclusive_gpus ? SHARING_STREAMS : simulation->sharing,
        .exclusive = type->exclusive,
        .takes_turns = simulation->take_turns,
        .need = type->need,
        .gpu_kind = *type->gpu_kind ? type->gpu_kind : NULL};
    if (simulation->need_error > 0 && type->need.kind >= NEED_ESTIMATED)
        request.need = need_with_error(run, &type->need);
    if (simulation->knows_activity)
        request.expect = (struct expectation){.smact = reading_unless_nan(type->demand.smact),
            .gract = reading_unless_nan(type->demand.gract),
            .dram = reading_unless_nan(type->demand.dram)};
    double time_us = round(type->solo_s * (double)SECOND_US);
    if (!type->service && !type->exclusive && !exclusive_gpus)
        request.slowdown_max = simulated_promise(run, (uint64_t)run->result.submitted);
    if (type->service)
        request_service(type, &request);
    else if (simulation->knows_time && time_us > 0)
        request.expect.time_us = reading_of(time_us);
    learning_add(run, type, (uint32_t)run->next_arrival.user, &request);
    return request;
}

/* ---- tasks that fit no GPU ---- */

static void leave_out(struct simulation_run *run, const struct fault *why)
{
    const struct simulation *simulation = run->simulation;
    FILE *remarks = simulation->remarks;
    if (++run->result.left_out > REMARKS_MAX + 1 || !remarks)
        return;
    if (run->result.left_out > REMARKS_MAX)
        fprintf(remarks, "%s: more tasks are left out\n",
            simulation->log ? simulation->log : simulation->trace);
    else if (simulation->log) /* its lines are not those of the trace */
        fprintf(remarks, "%s: left out: %s: %s\n", simulation->log, run->next_arrival.task->name,
            why->text);
    else
        fprintf(remarks, "%s:%" PRId64 ": left out: %s: %s\n", simulation->trace,
            run->arrivals.columns.number, run->next_arrival.task->name, why->text);
}

/* Could the arriving task ever start on these GPUs? The answer is the same for each task of a
 * name. */
static bool can_start(struct simulation_run *run, const struct task_request *request)
{
    bool *known = &run->can_start[run->next_arrival.task - run->simulation->catalogue->tasks];
    struct fault why;
    if (*known)
        return true;
    *known = core_check_request(sim_core(run->sim), request, &why) == 0;
    if (!*known)
        leave_out(run, &why);
    return *known;
}

/* ---- submission ---- */

/* A new task with the next id; NULL without memory. With a seed its time is spread at random. */
static struct simulated_task *add_task(struct simulation_run *run, const struct sim_task *type)
{
    if (ARRAY_RESERVE(run->tasks, run->tasks_capacity, run->n_tasks + 2) < 0)
        return NULL;
    struct simulated_task *task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    uint64_t seed = run->simulation->seed;
    double spread = run->simulation->laws->spread;
    task->running.id = ++run->n_tasks;
    task->type = type;
    task->solo_s = type->solo_s * (seed ? exp(spread * chance_normal(seed, task->running.id)) : 1);
    return run->tasks[task->running.id] = task;
}

static void add_service(struct simulation_run *run, struct simulated_task *task, int64_t now_us)
{
    run->n_services++;
    simulation_run_check(run, simulated_service_init(run, task, now_us));
    if (run->error)
        return;
    simulation_run_wake(run, WAKE_SERVICE, now_us + SECOND_US, task->running.id, 0);
}

/* Adds the task that arrives now, of a submission at that time. Returns it, or NULL. */
static struct simulated_task *add_arrival(struct simulation_run *run, int64_t now_us)
{
    const struct sim_task *type = run->next_arrival.task;
    struct simulated_task *task = add_task(run, type);
    if (!task) {
        simulation_run_check(run, -ENOMEM);
        return NULL;
    }
    if (type->service) {
        run_totals_add_service(&run->totals, now_us);
        add_service(run, task, now_us);
    } else {
        run->n_unended++;
        run->result.submitted++;
        run_totals_add_submitted(&run->totals, now_us, type, task->solo_s);
    }
    return task;
}

/* Adds the trials of the array whose first one arrives now, and submits them at once. The array's
 * id is below theirs, as the core wants it. */
static void submit_array(struct simulation_run *run, struct event *event)
{
    struct array_element *elements = NULL;
    size_t n = 0, capacity = 0;
    int number = run->next_arrival.array;
    if (ARRAY_RESERVE(run->tasks, run->tasks_capacity, run->n_tasks + 2) < 0) {
        simulation_run_check(run, -ENOMEM);
        return;
    }
    event->task = ++run->n_tasks;
    run->tasks[event->task] = NULL;
    struct simulated_array *array = simulated_array_create(run, event->task);
    simulation_run_check(run, array ? 0 : -ENOMEM);
    while (!run->error && run->next_arrival.task && run->next_arrival.array == number) {
        struct simulated_task *task = add_arrival(run, event->time_us);
        if (!task)
            break;
        const struct array_element element = {task->running.id, (int)n};
        simulation_run_check(run, simulated_trial_init(run, task, array, run->next_arrival.metric));
        simulation_run_check(run, ARRAY_APPEND(elements, n, capacity, element));
        read_next(run);
    }
    event->submit.elements = elements;
    event->submit.n_elements = (int)n;
    event->submit.stop = *run->simulation->stop;
    if (!run->error)
        simulation_run_check(run, sim_step(run->sim, event));
    free(elements);
}

static void submit_task(struct simulation_run *run, struct event *event)
{
    const struct simulated_task *task = add_arrival(run, event->time_us);
    if (!task || run->error)
        return;
    event->task = task->running.id;
    simulation_run_check(run, sim_step(run->sim, event));
    read_next(run);
}

void submission_submit(struct simulation_run *run)
{
    const struct sim_task *type = run->next_arrival.task;
    struct event event = {.kind = EVENT_SUBMIT, .time_us = run->next_arrival.time_us};
    event.submit.uid = (uint32_t)run->next_arrival.user;
    event.submit.request = request_for(run, type);
    event.submit.request.limited = run->simulation->settings.user_limits.usage_us > 0;
    if (!can_start(run, &event.submit.request))
        read_next(run);
    else if (run->next_arrival.array)
        submit_array(run, &event);
    else
        submit_task(run, &event);
    schedule_next(run);
}
