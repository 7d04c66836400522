/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Services: tasks without an end, whose requests have to be answered in time.
 *
 * The driver reports the latency of their requests (LATENCY). While a service misses its target,
 * the tasks beside it give way, one after the other: those of the lowest priority first, and of
 * these the newest. They are suspended, or paused where that is all that is possible. Once the
 * target has been met for the hold (core_settings.service_hold_us), one of them is resumed, or
 * another task may be placed there (policy/service_guard.c). If the target is missed again soon
 * after that, the hold is doubled, so that a task that does not fit is not tried all the time.
 *
 *     t=0    the service runs alone          p99 20 ms of 50
 *     t=60   task a is placed beside it      p99 80 ms
 *     t=70   a is paused                     p99 20 ms; the hold is 120 s now
 *     t=190  a goes on                       p99 80 ms
 *     t=200  a is paused                     p99 20 ms; the hold is 240 s now
 *
 * Reports are not in the log. After a restart the latency of a service is unknown: no task is
 * placed beside it, and paused tasks stay paused, until the hold has passed again.
 *
 * A service that ends is run again: after a second, and after twice as long for each further early
 * end, up to 4 min 16 s.
 */
#include <math.h>

#include "base/clock.h"
#include "core/core_private.h"

/* Chosen, as parts of the hold: a target missed for less may be noise; and the effect of a task
 * that came or went is seen after that. */
enum { HOLDS_PER_MISS = 12, HOLDS_PER_SETTLE = 6 };

/* Chosen: if a service misses its target within five holds after a task came, that task is taken to
 * be the cause. */
enum { HOLDS_TO_BLAME = 5, DOUBLINGS_MAX = 4 };

/* Chosen: the end of a longer attempt is not early. */
#define QUICK_END_US (300 * SECOND_US)

enum { RESTART_DOUBLINGS_MAX = 8 }; /* chosen: 2^8 s is 4 min 16 s */

/* Chosen: a report that is older says nothing. The driver reports once a second. */
#define REPORT_VALID_US (30 * SECOND_US)

/* ---- restarts ---- */

/* The exit may say that colloc ended it, where the log could not (architecture.md). */
bool core_may_restart(const struct task *task)
{
    enum failure_class failure = task->run->exit.failure;
    return task->request.service.is_service && !task->ending && !task->request.once &&
           failure != FAILURE_CANCELLED && failure != FAILURE_TIME_LIMIT;
}

int64_t core_restart_delay_us(const struct task *task)
{
    int quick = task->run->service.quick_ends;
    return SECOND_US << (quick < RESTART_DOUBLINGS_MAX ? quick : RESTART_DOUBLINGS_MAX);
}

int core_apply_restart(struct core *core, struct task *task, const struct event *event)
{
    struct task_service *service = &task->run->service;
    if (task->state != TASK_EXITED || !task->request.service.is_service)
        return CORE_NOT_NOW;
    bool was_quick = task->ended_us - task->started_us < QUICK_END_US;
    *service = (struct task_service){
        .quick_ends = was_quick ? service->quick_ends + 1 : 0, .restarts = service->restarts + 1};
    task->request.begin_us = event->restart_us;
    core_block_task(core, task, event->time_us);
    return 0;
}

/* ---- the state of a service ---- */

void core_begin_service(struct task *task)
{
    struct task_service *service = &task->run->service;
    service->p99_us = READING_NONE;
    service->reported_us = service->met_since_us = service->missed_since_us = 0;
    service->joined_us = service->changed_us = 0;
}

static int64_t hold_us(const struct core *core, const struct task *task)
{
    return core->settings.service_hold_us << task->run->service.doublings;
}

static bool has_target(const struct task *task)
{
    return task->request.service.is_service && task->request.service.p99_us > 0;
}

/* May a task come beside the service? */
static bool is_open(const struct core *core, const struct task *task, int64_t now_us)
{
    const struct task_service *service = &task->run->service;
    int64_t hold = hold_us(core, task);
    return !has_target(task) || (service->met_since_us && now_us - service->met_since_us >= hold &&
                                    now_us - service->changed_us >= hold);
}

struct resident_service core_resident_service(
    const struct core *core, const struct task *task, int64_t now_us)
{
    if (!task->request.service.is_service)
        return (struct resident_service){.is_service = false};
    if (!has_target(task))
        return (struct resident_service){
            .is_service = true, .is_open = true, .headroom = INFINITY, .until_us = TIME_NEVER};
    double p99_us = reading_assume(task->run->service.p99_us, 0);
    return (struct resident_service){.is_service = true,
        .is_open = is_open(core, task, now_us),
        .headroom = p99_us > 0 ? (double)task->request.service.p99_us / p99_us : 1,
        .until_us = task->run->service.reported_us + REPORT_VALID_US};
}

static void update_residents(struct core *core, const struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++) {
        struct resident *resident = gpu_view_resident(&core->view.gpus[task->gpus[i]], task->id);
        if (resident) /* it comes to its GPUs one by one */
            resident->service = core_resident_service(core, task, now_us);
    }
}

int core_apply_latency(struct core *core, struct task *task, const struct event *event)
{
    struct task_service *service = &task->run->service;
    struct reading p99_us = event->p99_us;
    if (!task->request.service.is_service || task->state != TASK_RUNNING ||
        (p99_us.valid && !(p99_us.value >= 0)))
        return CORE_NOT_NOW;
    bool is_met = p99_us.valid && p99_us.value <= (double)task->request.service.p99_us;
    bool is_missed = p99_us.valid && !is_met;
    service->p99_us = p99_us;
    service->reported_us = event->time_us;
    if (!is_met || !service->met_since_us)
        service->met_since_us = is_met ? event->time_us : 0;
    if (!is_missed || !service->missed_since_us)
        service->missed_since_us = is_missed ? event->time_us : 0;
    update_residents(core, task, event->time_us);
    return 0;
}

/* ---- tasks come and give way ---- */

void core_note_joined(struct core *core, const struct task *task, int gpu, int64_t now_us)
{
    const struct gpu_view *view = &core->view.gpus[gpu];
    for (int i = 0; i < view->n_residents && core->view.has_services; i++) {
        struct task *service = core_find_task(core, view->residents[i].task);
        if (!has_target(service) || (service == task && view->n_residents == 1))
            continue;
        service->run->service.joined_us = service->run->service.changed_us = now_us;
        service->run->service.met_since_us = service->run->service.missed_since_us = 0;
        update_residents(core, service, now_us);
    }
}

void core_note_gave_way(struct core *core, const struct task *task, int64_t now_us)
{
    struct task *other = core_find_task(core, task->run->yield.to_task);
    core->view.has_services = true;
    if (!other || !has_target(other) || !task_has_run(other))
        return;
    struct task_service *service = &other->run->service;
    bool is_to_blame = service->joined_us &&
                       now_us - service->joined_us < HOLDS_TO_BLAME * hold_us(core, other);
    service->doublings = !is_to_blame                         ? 0
                         : service->doublings < DOUBLINGS_MAX ? service->doublings + 1
                                                              : DOUBLINGS_MAX;
    service->changed_us = now_us;
    service->met_since_us = service->missed_since_us = 0;
    update_residents(core, other, now_us);
}

bool core_waits_for_service(const struct task *task)
{
    bool has_stopped = task->state == TASK_PAUSED || task->state == TASK_SUSPENDED;
    return has_stopped && task->run->yield.reason == YIELD_TO_SERVICE && !task->run->yield.by_user;
}

/* ---- decisions ---- */

static bool gives_way_rather(const struct task *a, const struct task *b)
{
    if (a->request.priority != b->request.priority)
        return a->request.priority < b->request.priority;
    int64_t a_us = task_runs_since_us(a), b_us = task_runs_since_us(b);
    return a_us != b_us ? a_us > b_us : a->id > b->id;
}

/* The task beside the service that gives way next; NULL: there is none. */
static const struct task *find_giver(
    const struct core *core, const struct task *service, int64_t now_us)
{
    const struct task *found = NULL;
    for (int i = 0; i < service->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[service->gpus[i]];
        for (int k = 0; k < gpu->n_residents; k++) {
            const struct task *task = core_find_task(core, gpu->residents[k].task);
            bool can_stop = core->settings.can_pause || core_may_suspend(core, task, now_us);
            bool may_be = can_stop && task->state == TASK_RUNNING && !task->ending &&
                          !task->request.service.is_service;
            if (may_be && (!found || gives_way_rather(task, found)))
                found = task;
        }
    }
    return found;
}

static int help_service(struct core *core, const struct task *service, int64_t now_us)
{
    int64_t hold = core->settings.service_hold_us;
    const struct task_service *state = &service->run->service;
    bool is_late = state->missed_since_us &&
                   now_us - state->missed_since_us >= hold / HOLDS_PER_MISS &&
                   now_us - state->changed_us >= hold / HOLDS_PER_SETTLE;
    const struct task *task = is_late ? find_giver(core, service, now_us) : NULL;
    return task ? core_stop_task(core, task, YIELD_TO_SERVICE, service->id, now_us) : 0;
}

/* Do the services beside the paused task let it continue? True also when there is none any more. */
static bool may_go_on(const struct core *core, const struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        for (int k = 0; k < gpu->n_residents; k++) {
            const struct task *other = core_find_task(core, gpu->residents[k].task);
            bool is_stale = has_target(other) &&
                            now_us - other->run->service.reported_us > REPORT_VALID_US;
            if (is_stale || !is_open(core, other, now_us))
                return false;
        }
    }
    return true;
}

/* Of paused tasks on a GPU, the one that was paused first continues first. */
static bool comes_back_first(const struct core *core, const struct task *task)
{
    for (int i = 0; i < core->n_tasks; i++) {
        const struct task *other = core->tasks[i];
        if (other != task && core_waits_for_service(other) && other->state == TASK_PAUSED &&
            other->run->yield.since_us < task->run->yield.since_us && task_shares_gpu(task, other))
            return false;
    }
    return true;
}

int core_schedule_services(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->n_tasks && core->view.has_services && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (has_target(task) && task->state == TASK_RUNNING)
            r = help_service(core, task, now_us);
        else if (task->state == TASK_PAUSED && core_waits_for_service(task) && !task->ending &&
                 may_go_on(core, task, now_us) && comes_back_first(core, task))
            r = core_continue_task(core, task, now_us);
    }
    return r;
}
