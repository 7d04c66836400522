/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applying an event: the only way in which the state changes, live and when a log is replayed.
 *
 * For each event, apply_to_task calls one function, which first tests that the event suits the
 * state of the task (the life-cycle of task.h) and changes nothing if not: CORE_NOT_NOW. It then
 * moves the task and keeps four things in step, which task_is_sound tests after every event:
 *
 *   - its queue: the task is in one exactly while it waits to be placed or resumed;
 *   - its GPUs: `gpus` is set exactly while its state holds GPUs, and the task is then a resident
 *     of each of them;
 *   - its process: known exactly from RUNNING to ENDING;
 *   - its times: waiting, executing and being stopped are added up when they end.
 *
 * How a running task gives way and is resumed is in apply_yield.c.
 *
 * Nothing is decided here, no effect is left, and no clock is read: time is in the event. So a
 * replayed log gives the same state, event by event. Only the samples are not in the log and lost
 * in a restart; the next samples replace them.
 */
#include "core/state/apply.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/kind_speed.h"
#include "core/state/advances.h"
#include "core/state/apply_sample.h"
#include "core/state/apply_submit.h"
#include "core/state/apply_update.h"
#include "core/state/apply_yield.h"
#include "core/state/charges.h"
#include "core/state/claims.h"
#include "core/state/copies.h"
#include "core/state/delays.h"
#include "core/state/dependents.h"
#include "core/state/fault_attribution.h"
#include "core/state/fifo_marks.h"
#include "core/state/library_use.h"
#include "core/state/listed_gpus.h"
#include "core/state/noted_ends.h"
#include "core/state/promise.h"
#include "core/state/recovery_need.h"
#include "core/state/residents.h"
#include "core/state/service.h"
#include "core/state/state.h"
#include "core/state/sweeps.h"
#include "core/state/task_attempt.h"
#include "core/state/tasks.h"
#include "core/state/waiting.h"

static bool is_waiting(const struct task *task)
{
    return task->state == TASK_QUEUED || task->state == TASK_RECOVERING;
}

static struct reading least_free(const struct cluster_view *view, const int *gpus, int n)
{
    if (n == 0)
        return READING_NONE;
    struct reading least = gpu_view_free_bytes(&view->gpus[gpus[0]]);
    for (int i = 1; i < n && least.valid; i++) {
        struct reading each = gpu_view_free_bytes(&view->gpus[gpus[i]]);
        if (!each.valid || each.value < least.value)
            least = each;
    }
    return least;
}

/* The task starts before those that are ahead of it in its queue. */
static void count_passed(const struct task *task)
{
    for (struct task *passed = task->previous; passed; passed = passed->previous)
        passed->passed_count++;
}

static int apply_place(struct core *core, struct task *task, const struct event *event)
{
    bool needs_none = task->request.gpus == 0 && event->place.n == 0;
    if (!is_waiting(task) ||
        (!needs_none &&
            (task->request.gpus == 0 || !core_are_gpus(core, event->place.gpus, event->place.n))))
        return CORE_NOT_NOW;
    int *gpus = calloc((size_t)event->place.n + 1, sizeof *gpus);
    if (!gpus || task_begin_run(task) < 0) {
        free(gpus);
        return -ENOMEM;
    }

    count_passed(task);
    core_stop_waiting(task, event->time_us);
    core_forget_drains(core, task->id);
    task_move(task, TASK_STARTING);
    task->gpus = gpus;
    for (int i = 0; i < event->place.n; i++)
        gpus[i] = event->place.gpus[i];
    task->n_gpus = event->place.n;
    task->exclusive = event->place.exclusive;
    task->run->share = event->place.share;
    task->run->has_library = core->settings.preload && !task->request.without_library;
    task->run->kind_speed = kind_speed_on(&core->view, task, gpus, task->n_gpus);
    task->had_coresidents = false;
    core_take_host(core, task);
    task->attempts++;
    task->started_us = event->time_us;
    task->run->free_bytes = least_free(&core->view, gpus, task->n_gpus);
    core_begin_attempt(task);
    for (int i = 0; i < task->n_gpus; i++)
        if (core_add_to_gpu(core, task, gpus[i], event->time_us) < 0)
            return -ENOMEM;
    if (task->n_gpus == 0)
        return core_add_to_host(core, task->id);
    core->view.last_placed = gpus[task->n_gpus - 1];
    core->last_start_us = event->time_us;
    return 0;
}

/* There was no MPS server: the attempt is time-sliced. */
static void use_time_slicing(struct core *core, struct task *task)
{
    task->run->share = (struct sharing_mode){
        .sharing = SHARING_STREAMS, .reason = task->run->share.reason};
    for (int i = 0; i < task->n_gpus; i++) {
        struct resident *resident = gpu_view_resident(&core->view.gpus[task->gpus[i]], task->id);
        resident->sharing = SHARING_STREAMS;
        resident->thread_percent = 0;
        resident->measured.seen = 0; /* that of a client */
    }
}

/* It was started otherwise than expected. With the library others may now start beside the task
 * though its memory is unknown. */
static void note_library(struct core *core, struct task *task, bool has_library)
{
    task->run->has_library = has_library;
    for (int i = 0; i < task->n_gpus; i++) {
        struct resident *resident = gpu_view_resident(&core->view.gpus[task->gpus[i]], task->id);
        resident->has_library = has_library;
        core_expect_library(resident);
    }
    core->pass_needed |= has_library && core->settings.conditions.starting_max > 0;
}

static int apply_started(struct core *core, struct task *task, const struct event *event)
{
    if (!task_state_has_attempt(task->state))
        return CORE_NOT_NOW;
    if (event->started.by_streams)
        use_time_slicing(core, task);
    bool is_first = task->state == TASK_STARTING; /* after a restart it is not said again */
    if (event->started.has_library ? !task->run->has_library : is_first && task->run->has_library)
        note_library(core, task, event->started.has_library);
    if (task->state != TASK_STARTING) {
        task->run->memory_wait.is_unconfirmed = task->run->memory_wait.bytes > 0;
        return 0;
    }
    task_move(task, TASK_RUNNING);
    task->has_process = true;
    if (task->ending)
        task_move(task, TASK_ENDING);
    core_note_time_limit(core, task, event->time_us);
    return 0;
}

/*
 * The start never happened: the task has been waiting since its placement. STARTED may have been
 * logged for a shim that then did not claim the attempt. So a time limit that was reached meanwhile
 * does not end the task; a cancel does.
 */
static int apply_unstarted(struct core *core, struct task *task, const struct event *event)
{
    if (!task_may_move(task->state, TASK_QUEUED) || !task_state_has_attempt(task->state))
        return CORE_NOT_NOW;
    core_end_attempt(core, task, event->time_us);
    core_return_host(core, task);
    core_release_gpus(core, task, event->time_us);
    task->has_process = task->exclusive = false;
    task->run->unstarted++;
    if (task->ending != FAILURE_CANCELLED)
        task->ending = FAILURE_NONE;
    task->run->stop.is_losing = false;
    core_return_to_queue(core, task, task->started_us);
    return 0;
}

/* The process may have ended long before the event, while no daemon ran. */
static int64_t end_of_attempt(const struct task *task, const struct event *event)
{
    int64_t ended_us = event->exited.ended_us;
    return ended_us >= task->started_us && ended_us <= event->time_us && ended_us ? ended_us
                                                                                  : event->time_us;
}

static int apply_exited(struct core *core, struct task *task, const struct event *event)
{
    if (!task_state_has_attempt(task->state))
        return CORE_NOT_NOW;
    core_attribute_exit(core, task, event);
    if (event->exited.failure == FAILURE_GPU_OOM)
        core_note_reached(core, task);
    core_return_host(core, task);
    core_release_gpus(core, task, event->time_us);
    task->exclusive = false;
    task->ended_us = end_of_attempt(task, event);
    core_end_attempt(core, task, task->ended_us);
    int64_t executed_us = task->ended_us - task->started_us - task->run->yield.attempt_stopped_us;
    task->executed_us += executed_us > 0 ? executed_us : 0;
    task->has_process = false;
    task->run->exit = event->exited;
    bool has_reason = task_was_ended(task) || task->ending == FAILURE_REQUEUED;
    if (!has_reason || task_ended_before_limit(task, event->exited.ended_us))
        task->ending = FAILURE_NONE;
    if (event->exited.failure == FAILURE_GPU_OOM)
        task->oom_count++;
    task_move(task, TASK_EXITED);
    return 0;
}

static int apply_cancel(struct task *task, int64_t now_us)
{
    if (task_state_is_done(task->state) || task->state == TASK_EXITED || task_was_ended(task))
        return CORE_NOT_NOW;
    task->ending = FAILURE_CANCELLED;
    core_begin_ending(task, now_us);
    return 0;
}

/* A task that is to run once is not run again. A second request changes nothing. */
static int apply_run_again(struct task *task, const struct event *event)
{
    bool may_end = task_state_has_attempt(task->state) && !task_was_ended(task);
    if (!may_end || task->request.once)
        return CORE_NOT_NOW;
    task->ending = FAILURE_REQUEUED;
    core_begin_ending(task, event->time_us);
    if (event->run_again_bytes > 0) {
        task->request.need = (struct need){NEED_ESTIMATED, event->run_again_bytes};
        task->run->need_is_least = true;
    }
    return 0;
}

static int apply_expire(struct task *task)
{
    if (task->state != TASK_RUNNING)
        return CORE_NOT_NOW;
    task->ending = FAILURE_TIME_LIMIT;
    task_move(task, TASK_ENDING);
    return 0;
}

static int apply_evict(struct task *task, int64_t now_us)
{
    if (!task_state_has_attempt(task->state) || task->ending)
        return CORE_NOT_NOW;
    task->ending = FAILURE_GPU_GONE;
    core_begin_ending(task, now_us);
    return 0;
}

static int apply_external_seen(struct task *task)
{
    if (!task_state_holds_gpus(task->state))
        return CORE_NOT_NOW;
    task->had_coresidents = true;
    return 0;
}

/* What is known already stays, but for an estimate that rises. */
static int apply_estimate(struct task *task, const struct event *event)
{
    bool waits = is_waiting(task) || task->state == TASK_HELD || task->state == TASK_BLOCKED;
    return waits && task_request_learn(&task->request, &event->estimate) ? 0 : CORE_NOT_NOW;
}

static int apply_hold(struct core *core, struct task *task, const struct event *event)
{
    if (!is_waiting(task) && task->state != TASK_BLOCKED)
        return CORE_NOT_NOW;
    core_leave_queue(core, task, event->time_us);
    core_leave_fifo(core, task);
    return 0;
}

static int apply_release(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_HELD)
        return CORE_NOT_NOW;
    core_enter_queue(core, task, event->time_us);
    return 0;
}

static int apply_eligible(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_BLOCKED || task->n_after)
        return CORE_NOT_NOW;
    core_stop_waiting(task, event->time_us);
    core_return_to_queue(core, task, event->time_us);
    return 0;
}

static int apply_recover(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_EXITED)
        return CORE_NOT_NOW;
    core_return_to_queue(core, task, event->time_us);
    return 0;
}

static int apply_requeue(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_EXITED)
        return CORE_NOT_NOW;
    if (task->ending != FAILURE_REQUEUED) {
        task->requeue_count++;
        task->mps_failures += task->run->exit.failure != FAILURE_GPU_GONE &&
                              !task->run->exit.by_gpu;
    }
    task->ending = FAILURE_NONE;
    core_return_to_queue(core, task, event->time_us);
    return 0;
}

static int apply_end(struct core *core, struct task *task, const struct event *event)
{
    if (!task_state_is_done(event->end) || !task_may_move(task->state, event->end))
        return CORE_NOT_NOW;
    if (core_note_end(core, task->id, !task_state_is_success(event->end)) < 0)
        return -ENOMEM;
    if (task->state != TASK_EXITED) {
        core_stop_waiting(task, event->time_us);
        task->ended_us = event->time_us;
    }
    core_forget_drains(core, task->id);
    core_drop_dependencies(core, task);
    core_leave_slot(core, task);
    task_move(task, event->end);
    return 0;
}

static int apply_suspension_cost(struct core *core, const struct event *event)
{
    const struct suspension_cost *cost = &event->suspension_cost.cost;
    enum suspension_way way = event->suspension_cost.way;
    int of_gpu = event->suspension_cost.of_gpu;
    if (cost->fixed_us < 0 || cost->suspend_us_per_gib < 0 || cost->resume_us_per_gib < 0 ||
        of_gpu < 0 || of_gpu > core->view.n_gpus)
        return CORE_NOT_NOW;
    struct suspension_costs *costs = of_gpu ? &core->view.gpus[of_gpu - 1].stop_costs
                                            : &core->suspension_costs;
    if (way == SUSPENSION_EITHER_WAY || way == SUSPENSION_BY_DRIVER)
        costs->driver = *cost;
    if (way == SUSPENSION_EITHER_WAY || way == SUSPENSION_BY_CARRIER)
        costs->carrier = *cost;
    if (way == SUSPENSION_TO_NEIGHBOUR)
        costs->neighbour = *cost;
    return 0;
}

static int apply_latest_start(struct task *task, int64_t latest_start_us)
{
    if (task_state_is_done(task->state))
        return CORE_NOT_NOW;
    if (!task->latest_start_us)
        task->fair_since_us = task->queued_us;
    task->latest_start_us = latest_start_us;
    return 0;
}

static int apply_to_task(struct core *core, struct task *task, const struct event *event)
{
    switch (event->kind) {
    case EVENT_ESTIMATE:
        return apply_estimate(task, event);
    case EVENT_STARTED:
        return apply_started(core, task, event);
    case EVENT_UNSTARTED:
        return apply_unstarted(core, task, event);
    case EVENT_EXITED:
        return apply_exited(core, task, event);
    case EVENT_CANCEL:
        return apply_cancel(task, event->time_us);
    case EVENT_RUN_AGAIN:
        return apply_run_again(task, event);
    case EVENT_HOLD:
        return apply_hold(core, task, event);
    case EVENT_RELEASE:
        return apply_release(core, task, event);
    case EVENT_UPDATE:
        return core_apply_update(core, task, event);
    case EVENT_PLACE:
        return apply_place(core, task, event);
    case EVENT_EXPIRE:
        return apply_expire(task);
    case EVENT_STOP:
        return core_apply_stop(task, event);
    case EVENT_EVICT:
        return apply_evict(task, event->time_us);
    case EVENT_EXTERNAL_SEEN:
        return apply_external_seen(task);
    case EVENT_RECOVER:
        return apply_recover(core, task, event);
    case EVENT_REQUEUE:
        return apply_requeue(core, task, event);
    case EVENT_END:
        return apply_end(core, task, event);
    case EVENT_LATENCY:
        return core_apply_latency(core, task, event);
    case EVENT_SPEED:
        return core_apply_speed(core, task, event);
    case EVENT_RESTART:
        return core_apply_restart(core, task, event);
    case EVENT_DEPENDENCY:
        return core_apply_dependency(core, task, event);
    case EVENT_STEP:
        return 0;
    case EVENT_ELIGIBLE:
        return apply_eligible(core, task, event);
    case EVENT_LATEST_START:
        return apply_latest_start(task, event->latest_start_us);
    default:
        return core_apply_yield(core, task, event);
    }
}

int core_apply_event(struct core *core, const struct event *event)
{
    core->users->change++;
    switch (event->kind) {
    case EVENT_GPUS:
        return core_apply_gpus(core, event);
    case EVENT_SUBMIT:
        return core_apply_submit(core, event);
    case EVENT_SAMPLE:
        return core_apply_sample(core, event);
    case EVENT_TICK:
        return 0;
    case EVENT_USAGE:
        return core_apply_usage(core, event);
    case EVENT_DELAYS:
        return core_apply_delays(core, event);
    case EVENT_RESERVE:
    case EVENT_UNRESERVE:
        return core_apply_advance(core, event);
    case EVENT_METRIC:
        return core_apply_metric(core, event);
    case EVENT_SUSPENSION_COST:
        return apply_suspension_cost(core, event);
    case EVENT_FIFO:
        return core_apply_fifo(core, event);
    default:
        break;
    }
    struct task *task = core_find_task(core, event->task);
    if (!task)
        return CORE_NO_SUCH_TASK;
    int r = apply_to_task(core, task, event);
    core_count_copy(core, task);
    assert(r != 0 || task_is_sound(task));
    return r;
}
