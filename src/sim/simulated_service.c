/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a service. Once a second its requests are counted as a queue (request_queue.h):
 *
 *     how long a request takes    request_s of the catalogue, divided by the speed at which the
 *                                 interference model lets a task run that answers requests without
 *                                 a pause, beside the tasks that are there
 *     how long requests wait      the queue M/D/1; with more than can be answered, the backlog, too
 *     what its GPUs do meanwhile  the catalogue's activity, for the part of the time in which
 *                                 requests are being answered
 *
 * The p99 is reported to the core as the daemon reports it: once a second, the largest of the last
 * ten seconds. So the core's rules for services decide which trainings come and give way.
 *
 * It answers from the time on at which it has all its memory. A service without a time in the
 * catalogue ends with the last training; one that has a time, that long after its first start. The
 * core knows that time as a time limit, which is of one attempt: a service that has been restarted
 * is cancelled within a second after its end.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sim/simulation_run.h"

/* A smaller change of the load leaves the GPU as it is. Chosen: below what changes a decision. */
#define LOAD_CHANGE_MIN 0.005

/* The interference model divides by weights: a service without requests does next to nothing. */
#define LOAD_MIN 1e-6

/* If no training has computed for so long, none is to come, and no service changes any more, none
 * ever will. Chosen: far longer than the longest hold of a service (core/state/service.c). */
#define STUCK_US DAY_US

static struct demand scale_demand(const struct demand *demand, double load)
{
    return (struct demand){.gract = demand->gract * load,
        .smact = demand->smact * load,
        .smocc = demand->smocc * load,
        .dram = demand->dram * load,
        .power_w = demand->power_w * load};
}

/* A service changes its rate, or ends. */
static int64_t note_change(struct simulation_run *run, int64_t from_us, double after_s)
{
    int64_t time_us = from_us + llround(after_s * (double)SECOND_US);
    if (time_us > run->services_change_us)
        run->services_change_us = time_us;
    return time_us;
}

int simulated_service_init(
    struct simulation_run *run, struct simulated_task *task, int64_t submitted_us)
{
    const struct request_rate *rate = &task->type->service->rate;
    struct simulated_service *service = task->service = calloc(1, sizeof *service);
    if (!service)
        return -ENOMEM;
    task->solo_s = task->type->solo_s; /* its time is no work, and has no spread */
    service->submitted_us = submitted_us;
    service->end_us = TIME_NEVER;
    service->total = service_totals_add(&run->services, task->running.id, task->type);
    note_change(
        run, submitted_us, isfinite(task->solo_s) ? task->solo_s : rate->steps[rate->n - 1].from_s);
    return service->total ? 0 : -ENOMEM;
}

void simulated_service_start(struct simulation_run *run, struct simulated_task *task)
{
    struct simulated_service *service = task->service;
    service->busy = task->running.demand;
    service->load = LOAD_MIN;
    service->queue.backlog = 0;
    service->n_reports = 0;
    task->running.left_s = INFINITY;
    task->running.demand = scale_demand(&service->busy, service->load);
    if (isfinite(task->solo_s) && service->end_us == TIME_NEVER)
        service->end_us = note_change(run, task->start_us, task->solo_s);
}

static bool is_answering(const struct simulated_task *task)
{
    return task->attempt && task->memory_steps == MEMORY_STEPS && !task->waits;
}

/* Sets the part of the time in which it answers requests: as much as its present speed needs. */
static void set_load(struct simulation_run *run, struct simulated_task *task)
{
    struct simulated_service *service = task->service;
    double speed = task->running.speed * task->running.kind_speed;
    double work = service->queue.rate * task->type->service->request_s;
    double load = service->queue.backlog > 0 ? 1 : fmax(LOAD_MIN, fmin(1, work / speed));
    if (fabs(load - service->load) < LOAD_CHANGE_MIN)
        return;
    service->load = load;
    simulated_task_prepare_change(run, &task->running);
    struct demand demand = scale_demand(&service->busy, load);
    simulated_gpus_set_demand(&run->gpus, &task->running, &demand, sim_now_us(run->sim));
}

static void report_latency(struct simulation_run *run, struct simulated_task *task)
{
    struct simulated_service *service = task->service;
    struct event event = {.kind = EVENT_LATENCY,
        .time_us = sim_now_us(run->sim),
        .task = task->running.id,
        .p99_us = reading_of(0)};
    int kept = service->n_reports < SERVICE_REPORTS ? service->n_reports + 1 : SERVICE_REPORTS;
    service->p99_s[service->n_reports++ % SERVICE_REPORTS] = request_queue_p99_s(&service->queue);
    for (int i = 0; i < kept; i++)
        event.p99_us.value = fmax(event.p99_us.value, service->p99_s[i] * (double)SECOND_US);
    int r = sim_step(run->sim, &event);
    simulation_run_check(run, r < 0 ? r : 0);
}

static void answer_requests(struct simulation_run *run, struct simulated_task *task)
{
    struct simulated_service *service = task->service;
    double speed = simulated_gpus_speed_as(&run->gpus, &task->running, &service->busy);
    service->queue.request_s = task->type->service->request_s / speed;
    request_queue_advance(&service->queue, 1);
    service_total_add(service->total, &service->queue, 1);
    set_load(run, task);
    report_latency(run, task);
}

/* Neither does a training compute, nor will one. */
static bool is_stuck(const struct simulation_run *run, int64_t now_us)
{
    bool has_recent = now_us - run->computed_us < STUCK_US ||
                      now_us - run->services_change_us < STUCK_US || run->next_arrival.task;
    for (int i = 0; i < run->gpus.cluster->n_places && !has_recent; i++) {
        const struct place *place = &run->gpus.places[i];
        for (int k = 0; k < place->n_residents; k++)
            has_recent |= !run->tasks[place->residents[k].task->id]->service;
    }
    return run->n_unended > 0 && !has_recent;
}

static void cancel_task(struct simulation_run *run, uint64_t id)
{
    struct event event = {.kind = EVENT_CANCEL, .time_us = sim_now_us(run->sim), .task = id};
    const struct task *task = core_task(sim_core(run->sim), id);
    if (!task || task->ending)
        return;
    simulation_run_check(run, sim_step(run->sim, &event));
    simulated_task_forget_if_done(run, id);
}

static void cancel_all(struct simulation_run *run)
{
    run->n_stuck = run->n_unended;
    for (uint64_t id = 1; id <= run->n_tasks; id++)
        cancel_task(run, id);
}

/* Where a service is past its end, or no training will end. */
static void cancel_if_due(struct simulation_run *run, uint64_t id, int64_t now_us)
{
    if (is_stuck(run, now_us))
        cancel_all(run);
    else if (now_us > run->tasks[id]->service->end_us)
        cancel_task(run, id);
}

void simulated_service_on_second(struct simulation_run *run, const struct sim_wakeup *wakeup)
{
    if (run->tasks[wakeup->subject])
        cancel_if_due(run, wakeup->subject, wakeup->time_us);
    struct simulated_task *task = run->tasks[wakeup->subject];
    if (!task)
        return;
    struct simulated_service *service = task->service;
    double since_s = (double)(wakeup->time_us - service->submitted_us) / (double)SECOND_US;
    service->queue.rate = request_rate_at(&task->type->service->rate, since_s);
    simulation_run_wake(
        run, WAKE_SERVICE, wakeup->time_us + SECOND_US, wakeup->subject, wakeup->version);
    if (is_answering(task))
        answer_requests(run, task);
    else if (service->total->up_s > 0)
        service_total_add_down(service->total, service->queue.rate, 1);
}

void simulated_services_end(struct simulation_run *run)
{
    for (uint64_t id = 1; id <= run->n_tasks; id++) {
        const struct simulated_task *task = run->tasks[id];
        if (task && task->service && isinf(task->solo_s))
            cancel_task(run, id);
    }
}
