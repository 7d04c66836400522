/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a service: whether it meets its latency target, and since when. The driver reports
 * the latency of its requests (LATENCY). Once the target has been met for the hold
 * (core_settings.service_hold_us), the service is open: another task may come beside it, or a
 * stopped one continue (pass/service_pass.c, policy/service_guard.c). If the target is missed again
 * soon after that, the hold is doubled, so that a task that does not fit is not tried all the time.
 *
 * Reports are not in the log. After a restart the latency of a service is unknown: no task is
 * placed beside it, and paused tasks stay paused, until the hold has passed again.
 */
#include "core/state/service.h"

#include <math.h>

#include "base/clock.h"
#include "core/hold.h"
#include "core/state/state.h"
#include "core/state/tasks.h"
#include "core/state/waiting.h"

/* Chosen: the end of a longer attempt is not early. */
#define QUICK_END_US (300 * SECOND_US)

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

bool core_has_latency_target(const struct task *task)
{
    return task->request.service.is_service && task->request.service.p99_us > 0;
}

bool core_is_service_open(const struct core *core, const struct task *task, int64_t now_us)
{
    const struct task_service *service = &task->run->service;
    int64_t hold = hold_us(core, task);
    return !core_has_latency_target(task) ||
           (service->met_since_us && now_us - service->met_since_us >= hold &&
               now_us - service->changed_us >= hold);
}

struct resident_service core_resident_service(
    const struct core *core, const struct task *task, int64_t now_us)
{
    if (!task->request.service.is_service)
        return (struct resident_service){.is_service = false};
    if (!core_has_latency_target(task))
        return (struct resident_service){
            .is_service = true, .is_open = true, .headroom = INFINITY, .until_us = TIME_NEVER};
    double p99_us = reading_assume(task->run->service.p99_us, 0);
    return (struct resident_service){.is_service = true,
        .is_open = core_is_service_open(core, task, now_us),
        .headroom = p99_us > 0 ? (double)task->request.service.p99_us / p99_us : 1,
        .until_us = task->run->service.reported_us + CORE_REPORT_VALID_US};
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
        if (!core_has_latency_target(service) || (service == task && view->n_residents == 1))
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
    if (!other || !core_has_latency_target(other) || !task_has_run(other))
        return;
    struct task_service *service = &other->run->service;
    service->doublings = hold_next_doublings(
        service->doublings, core->settings.service_hold_us, service->joined_us, now_us);
    service->changed_us = now_us;
    service->met_since_us = service->missed_since_us = 0;
    update_residents(core, other, now_us);
}

bool core_waits_for_service(const struct task *task)
{
    bool has_stopped = task->state == TASK_PAUSED || task->state == TASK_SUSPENDED;
    return has_stopped && task->run->yield.reason == YIELD_TO_SERVICE && !task->run->yield.by_user;
}
