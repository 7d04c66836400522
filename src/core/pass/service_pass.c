/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Services: tasks without an end, whose requests have to be answered in time.
 *
 * While a service misses its target (state/service.c), the tasks beside it give way, one after the
 * other: those of the lowest priority first, and of these the newest. They are suspended, or paused
 * where that is all that is possible. Once the target has been met for the hold, one of them is
 * resumed.
 *
 *     t=0    the service runs alone          p99 20 ms of 50
 *     t=60   task a is placed beside it      p99 80 ms
 *     t=70   a is paused                     p99 20 ms; the hold is 120 s now
 *     t=190  a goes on                       p99 80 ms
 *     t=200  a is paused                     p99 20 ms; the hold is 240 s now
 */
#include "core/pass/service_pass.h"

#include "core/ask/giver.h"
#include "core/decide/give_way.h"
#include "core/state/service.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* Chosen, as parts of the hold: a target missed for less may be noise; and the effect of a task
 * that came or went is seen after that. */
enum { HOLDS_PER_MISS = 12, HOLDS_PER_SETTLE = 6 };

static int help_service(struct core *core, const struct task *service, int64_t now_us)
{
    int64_t hold = core->settings.service_hold_us;
    const struct task_service *state = &service->run->service;
    bool is_late = state->missed_since_us &&
                   now_us - state->missed_since_us >= hold / HOLDS_PER_MISS &&
                   now_us - state->changed_us >= hold / HOLDS_PER_SETTLE;
    const struct task *task = is_late ? core_find_giver(core, service, now_us) : NULL;
    return task ? core_stop_task(core, task, YIELD_TO_SERVICE, service->id, now_us) : 0;
}

/* Do the services beside the paused task let it continue? True also when there is none any more. */
static bool may_go_on(const struct core *core, const struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        for (int k = 0; k < gpu->n_residents; k++) {
            const struct task *other = core_find_task(core, gpu->residents[k].task);
            bool is_stale = core_has_latency_target(other) &&
                            now_us - other->run->service.reported_us > CORE_REPORT_VALID_US;
            if (is_stale || !core_is_service_open(core, other, now_us))
                return false;
        }
    }
    return true;
}

int core_schedule_services(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->n_tasks && core->view.has_services && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (core_has_latency_target(task) && task->state == TASK_RUNNING)
            r = help_service(core, task, now_us);
        else if (task->state == TASK_PAUSED && core_waits_for_service(task) && !task->ending &&
                 may_go_on(core, task, now_us) && core_comes_back_first(core, task))
            r = core_continue_task(core, task, now_us);
    }
    return r;
}
