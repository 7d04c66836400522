/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applying the events by which a running task gives way and is resumed (suspension.h has the
 * states). As in apply.c, nothing is decided here: decide/give_way.c does that.
 *
 * A suspended task holds no GPUs; the context of a client of MPS stays on its GPU, and the task can
 * come back only there. It waits in a separate queue, unless a user suspended it, it did not use
 * its GPUs, or it is to end. A task that moves holds both its old and its new GPUs until
 * the answer comes, so no other task can take either.
 */
#include "core/state/apply_yield.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/state/charges.h"
#include "core/state/promise.h"
#include "core/state/residents.h"
#include "core/state/service.h"
#include "core/state/state.h"
#include "core/state/task_attempt.h"

/* ---- not computing ---- */

static void mark_residents(
    struct core *core, const struct task *task, bool is_stopped, int64_t now_us)
{
    core->any_stopped |= is_stopped;
    for (int i = 0; i < task->n_gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        core_accrue(core, gpu, now_us);
        gpu_view_resident(gpu, task->id)->is_stopped = is_stopped;
    }
}

/* Its GPUs take no other task until its memory is free: that is for the task to which it gives way.
 * By its user's order it gives way to none, and how long its processes take for that costs no
 * other task anything. */
static void mark_leaving(struct core *core, const struct task *task)
{
    if (task->run->yield.reason == YIELD_TO_USER)
        return;
    for (int i = 0; i < task->n_gpus; i++)
        core->view.gpus[task->gpus[i]].claims[CLAIM_CLOSED] = task->id;
}

static void begin_stop(struct core *core, struct task *task, const struct event *event)
{
    mark_residents(core, task, true, event->time_us);
    task->run->yield.reason = task->run->yield.by_user ? YIELD_TO_USER : event->yield.reason;
    task->run->yield.to_task = event->yield.to_task;
    task->run->yield.since_us = task->run->yield.ordered_us = event->time_us;
    task->run->yield.until_us = event->yield.until_us;
    task->run->yield.is_unused = task->run->yield.reason == YIELD_UNUSED;
    if (task->run->yield.reason == YIELD_TO_SERVICE)
        core_note_gave_way(core, task, event->time_us);
    if (task->run->yield.reason == YIELD_TO_PROMISE || task->run->yield.reason == YIELD_TO_SPEED)
        core_note_gave_way_to_promise(core, task, event->time_us);
    if (task->run->yield.reason == YIELD_TO_PROBE)
        core_note_probe_begun(core, task, event->time_us);
}

/* It computes again; or ends, if it was cancelled meanwhile. */
static void run_again(struct core *core, struct task *task, int64_t now_us)
{
    mark_residents(core, task, false, now_us);
    for (int i = 0; i < task->n_gpus; i++)
        claims_end(core->view.gpus[task->gpus[i]].claims, CLAIM_CLOSED, task->id);
    for (int i = 0; i < task->n_gpus; i++) {
        core_note_joined(core, task, task->gpus[i], now_us);
        core_note_joined_promise(core, task, task->gpus[i], now_us);
    }
    if (task->run->yield.reason == YIELD_TO_PROBE)
        core_note_probe_ended(core, task, now_us);
    core_end_stop(task, now_us);
    task->run->yield.is_unused = false;
    task->run->yield.resumed_us = now_us;
    task_move(task, TASK_RUNNING);
    if (task->ending)
        task_move(task, TASK_ENDING);
    core_note_time_limit(core, task, now_us);
}

/* Its process is off its GPUs, but for a context that stays. It waits to be resumed, unless
 * something keeps it. */
static int become_suspended(struct core *core, struct task *task, int64_t now_us)
{
    struct task_yield *yield = &task->run->yield;
    yield->from_gpu = task->gpus[0];
    yield->mps_clients = gpu_view_resident(&core->view.gpus[task->gpus[0]], task->id)->mps_clients;
    if (yield->mps_clients == 0 && task->run->share.sharing == SHARING_MPS)
        yield->mps_clients = 1;
    if (core_keep_contexts(core, task) < 0)
        return -ENOMEM;
    core_release_gpus(core, task, now_us);
    task_move(task, TASK_SUSPENDED);
    if (!task_stays_suspended(task))
        queue_push_in_order(&core->suspended_queue, task);
    return 0;
}

/* ---- a user's commands ---- */

static int apply_suspend(struct task *task)
{
    bool may_be = task->state == TASK_RUNNING || task->state == TASK_PAUSED ||
                  task->state == TASK_SUSPENDING || task->state == TASK_SUSPENDED;
    if (!may_be || task->run->yield.by_user || task->ending)
        return CORE_NOT_NOW;
    task->run->yield.by_user = true;
    task->run->yield.is_unused = false;
    if (task->state != TASK_RUNNING)
        task->run->yield.reason = YIELD_TO_USER;
    if (task->queue)
        queue_remove(task);
    return 0;
}

static int apply_resume(struct core *core, struct task *task)
{
    if ((!task->run->yield.by_user && !task->run->yield.is_unused) || task->ending)
        return CORE_NOT_NOW;
    task->run->yield.by_user = task->run->yield.is_unused = false;
    task->run->yield.retry_us = 0;
    if (task->state == TASK_SUSPENDED)
        queue_push_in_order(&core->suspended_queue, task);
    return 0;
}

/* As many GPUs as it has, and not the same ones. */
static bool may_move_to(const struct core *core, const struct task *task, const struct event *event)
{
    return task->state == TASK_RUNNING && !task->ending && event->yield.n == task->n_gpus &&
           core_are_gpus(core, event->yield.gpus, event->yield.n) &&
           core_are_different(event->yield.gpus, event->yield.n) &&
           core_count_new(task, event->yield.gpus, event->yield.n) > 0;
}

/* ---- tasks that do not use their GPUs ---- */

static int apply_idle(const struct task *task)
{
    return task->state == TASK_RUNNING ? 0 : CORE_NOT_NOW;
}

static int apply_wake(struct core *core, struct task *task)
{
    return task->run->yield.is_unused ? apply_resume(core, task) : CORE_NOT_NOW;
}

/* ---- suspending and resuming ---- */

static int apply_suspending(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_RUNNING || task->ending)
        return CORE_NOT_NOW;
    if (event->yield.n > 0 && !core_are_gpus(core, event->yield.gpus, event->yield.n))
        return CORE_NOT_NOW;
    begin_stop(core, task, event);
    mark_leaving(core, task);
    task->run->yield.keeps_context = event->yield.keeps_context;
    task_move(task, TASK_SUSPENDING);
    return event->yield.n > 0 ? core_add_copy(core, task, event->yield.gpus[0],
                                    reading_assume(event->yield.bytes, 0))
                              : 0;
}

/* Where its copy lies: on the neighbour, or on the host, though that was not the plan. */
static void note_place(struct core *core, struct task *task, struct reading copy_bytes)
{
    if (!task->run->yield.has_neighbour)
        return;
    if (copy_bytes.valid) {
        core_note_copied(core, task, copy_bytes.value);
        return;
    }
    task->run->yield.neighbour_failed = true;
    core_remove_copy(core, task);
}

/* Its copy leaves a neighbour GPU, or its context its own. */
static int apply_relocating(struct task *task)
{
    bool has_any = task->run->yield.has_neighbour || task_context_gpu(task) >= 0;
    if (task->state != TASK_SUSPENDED || !has_any || task->run->yield.is_relocating || task->ending)
        return CORE_NOT_NOW;
    task->run->yield.is_relocating = true;
    return 0;
}

/* From here on the driver has it, as if it had never stayed. No sample shows that yet. */
static void take_context_away(struct core *core, struct task *task, int64_t now_us)
{
    int gpu = task_context_gpu(task);
    if (gpu >= 0)
        core->view.gpus[gpu].mix_since_us = now_us;
    core_remove_context(core, task);
    task->run->yield.context_bytes = READING_NONE;
    task->run->yield.keeps_context = task->run->yield.is_relocating = false;
    task->run->yield.context_refusals = 0;
}

static int apply_relocated(struct core *core, struct task *task, const struct event *event)
{
    if (!task->run->yield.is_relocating)
        return CORE_NOT_NOW;
    task->run->yield.cost_us += event->yielded.took_us;
    if (task->run->yield.has_neighbour)
        core_remove_copy(core, task);
    else
        take_context_away(core, task, event->time_us);
    return 0;
}

/* The driver may take by now what it refused before: each suspension has one more try, at once. */
static void allow_relocation(struct task_yield *yield)
{
    int before = yield->context_bytes.valid ? yield->context_refusals : 0;
    yield->context_refusals = before < SUSPENSION_REFUSALS_MAX ? before
                                                               : SUSPENSION_REFUSALS_MAX - 1;
    yield->relocate_retry_us = 0;
}

static int apply_suspended(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_SUSPENDING)
        return CORE_NOT_NOW;
    task->run->yield.bytes = event->yielded.bytes;
    task->run->yield.cost_us += event->yielded.took_us;
    task->run->yield.suspensions++;
    task->run->yield.context_bytes = event->yielded.context_bytes;
    task->run->yield.has_ranks = event->yielded.has_ranks;
    allow_relocation(&task->run->yield);
    note_place(core, task, event->yielded.copy_bytes);
    return become_suspended(core, task, event->time_us);
}

static int apply_resuming(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_SUSPENDED || task_stays_suspended(task) ||
        task->run->yield.is_relocating || !core_are_gpus(core, event->yield.gpus, event->yield.n))
        return CORE_NOT_NOW;
    int *gpus = calloc((size_t)event->yield.n, sizeof *gpus);
    if (!gpus)
        return -ENOMEM;
    memcpy(gpus, event->yield.gpus, (size_t)event->yield.n * sizeof *gpus);
    queue_remove(task);
    core_remove_context(core, task); /* may free the list of the event */
    task_move(task, TASK_RESUMING);
    task->run->yield.ordered_us = event->time_us;
    task->gpus = gpus;
    task->n_gpus = event->yield.n;
    for (int i = 0; i < task->n_gpus; i++)
        if (core_add_to_gpu(core, task, gpus[i], event->time_us) < 0)
            return -ENOMEM;
    return 0;
}

/* By the next suspension the context of a time-sliced task may leave. */
static void forget_context_of_time_sliced(struct task_yield *yield, enum sharing sharing)
{
    if (sharing != SHARING_MPS && !yield->has_ranks)
        yield->context_bytes = READING_NONE;
}

static int apply_resumed(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_RESUMING)
        return CORE_NOT_NOW;
    task->run->yield.cost_us += event->yielded.took_us;
    task->run->yield.failures = 0;
    task->run->yield.retry_us = 0;
    task->run->yield.moves += task->gpus[0] != task->run->yield.from_gpu;
    core_remove_copy(core, task);
    forget_context_of_time_sliced(&task->run->yield, task->run->share.sharing);
    run_again(core, task, event->time_us);
    return 0;
}

/* ---- moving ---- */

/* Residents point to the list of GPUs of their task. */
static void point_residents(struct core *core, const struct task *task)
{
    for (int i = 0; i < task->n_gpus; i++) {
        struct resident *resident = gpu_view_resident(&core->view.gpus[task->gpus[i]], task->id);
        resident->places = task->gpus;
        resident->gpus = task->n_gpus;
    }
}

static int apply_moving(struct core *core, struct task *task, const struct event *event)
{
    if (!may_move_to(core, task, event))
        return CORE_NOT_NOW;
    int n = event->yield.n, n_held = task->n_gpus;
    int *to = calloc((size_t)n, sizeof *to);
    int *gpus = realloc(task->gpus, (size_t)(n_held + n) * sizeof *gpus);
    if (gpus)
        task->gpus = gpus;
    if (!to || !gpus) {
        free(to);
        return -ENOMEM;
    }
    begin_stop(core, task, event);
    task_move(task, TASK_MOVING);
    task->run->yield.bytes = event->yield.bytes;
    task->run->yield.keeps_context = false;
    task->run->yield.to_gpus = memcpy(to, event->yield.gpus, (size_t)n * sizeof *to);
    task->run->yield.n_to_gpus = n;
    for (int i = 0; i < n; i++) {
        if (gpu_is_among(to[i], task->gpus, n_held))
            continue;
        task->gpus[task->n_gpus++] = to[i];
        if (core_add_to_gpu(core, task, to[i], event->time_us) < 0)
            return -ENOMEM;
    }
    point_residents(core, task);
    return 0;
}

/* The task keeps the GPUs of its destination, or all but those. */
static void end_move(struct core *core, struct task *task, bool has_moved, int64_t now_us)
{
    int kept = 0, wanted = task->run->yield.n_to_gpus;
    for (int i = 0; i < task->n_gpus; i++) {
        int gpu = task->gpus[i];
        bool is_kept = has_moved ? gpu_is_among(gpu, task->run->yield.to_gpus, wanted) : i < wanted;
        if (is_kept)
            task->gpus[kept++] = gpu;
        else
            core_remove_resident(core, gpu, task->id, now_us);
    }
    task->n_gpus = kept;
    if (has_moved)
        memcpy(task->gpus, task->run->yield.to_gpus, (size_t)kept * sizeof *task->gpus);
    core_forget_destination(task);
    point_residents(core, task);
}

static int apply_moved(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_MOVING)
        return CORE_NOT_NOW;
    task->run->yield.cost_us += event->yielded.took_us;
    task->run->yield.moves++;
    task->run->yield.bytes = READING_NONE;
    end_move(core, task, true, event->time_us);
    run_again(core, task, event->time_us);
    return 0;
}

/* ---- failures ---- */

/* Chosen: a resumption that failed, or a context that the driver refused to take, is tried again
 * after 10 s, then after twice as long, at most 11 min. */
#define RETRY_FIRST_US    (10 * SECOND_US)
#define RETRY_DOUBLED_MAX 6

/* After so many failures before this one. */
static int64_t next_try_us(int failures, int64_t now_us)
{
    return now_us +
           (RETRY_FIRST_US << (failures < RETRY_DOUBLED_MAX ? failures : RETRY_DOUBLED_MAX));
}

static void retry_later(struct task *task, int64_t now_us)
{
    task->run->yield.retry_us = next_try_us(task->run->yield.failures++, now_us);
}

/* A copy on a GPU that was lent is tried again soon each time. */
static void fail_relocation(struct task_yield *yield, int64_t now_us)
{
    int failures = yield->has_neighbour ? 0 : yield->context_refusals++;
    yield->is_relocating = false;
    yield->relocate_retry_us = next_try_us(failures, now_us);
}

/* A process was not frozen: it has computed meanwhile, perhaps beside a task that is measured. */
static int fail_pause(struct core *core, struct task *task, int64_t now_us)
{
    struct task_yield *yield = &task->run->yield;
    int64_t resumed_us = yield->resumed_us;
    yield->is_frozen = yield->by_user = false;
    yield->cannot_pause = true;
    yield->pauses--;
    yield->since_us = 0; /* it has not been away */
    run_again(core, task, now_us);
    yield->resumed_us = resumed_us;
    return 0;
}

/* A process that should leave its GPUs still runs there; one that should get some is still
 * suspended; after a move, either. */
static int apply_suspension_failed(struct core *core, struct task *task, const struct event *event)
{
    bool is_suspended = event->suspension_failed.is_suspended;
    if (task->state == TASK_PAUSED && !is_suspended)
        return fail_pause(core, task, event->time_us);
    if (task->run->yield.is_relocating && is_suspended) {
        fail_relocation(&task->run->yield, event->time_us);
        return 0;
    }
    if (!task_state_is_changing(task->state) || (task->state == TASK_SUSPENDING && is_suspended) ||
        (task->state == TASK_RESUMING && !is_suspended))
        return CORE_NOT_NOW;
    if (task->state == TASK_MOVING)
        end_move(core, task, false, event->time_us);
    enum suspension_failure why = event->suspension_failed.why;
    bool may_retry = why == SUSPENSION_NO_MEMORY || why == SUSPENSION_NOT_NOW;
    if (!may_retry && !is_suspended)
        task->run->yield.cannot_suspend = true;
    retry_later(task, event->time_us);
    if (!is_suspended)
        core_remove_copy(core, task);
    if (is_suspended)
        return become_suspended(core, task, event->time_us);
    int64_t resumed_us = task->run->yield.resumed_us;
    task->run->yield.by_user = false;
    run_again(core, task, event->time_us);
    task->run->yield.resumed_us = resumed_us; /* it has not been away */
    return 0;
}

/* ---- pausing ---- */

static int apply_pause(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_RUNNING || task->ending)
        return CORE_NOT_NOW;
    begin_stop(core, task, event);
    task->run->yield.is_frozen = true;
    task->run->yield.pauses++;
    task_move(task, TASK_PAUSED);
    return 0;
}

static int apply_continue(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_PAUSED)
        return CORE_NOT_NOW;
    task->run->yield.is_frozen = false;
    run_again(core, task, event->time_us);
    return 0;
}

/* ---- waiting for memory ---- */

static int apply_memory_wait(struct core *core, struct task *task, const struct event *event)
{
    if (!task->has_process || event->memory_wait.bytes <= 0)
        return CORE_NOT_NOW;
    struct memory_wait *wait = &task->run->memory_wait;
    if (wait->bytes == 0) {
        wait->since_us = event->time_us;
        wait->count += !event->memory_wait.is_again;
        wait->n_refused = event->memory_wait.is_again ? wait->n_refused + 1 : 0;
        core->n_memory_waits++;
    }
    wait->bytes = event->memory_wait.bytes;
    wait->is_unconfirmed = false;
    return 0;
}

int core_apply_yield(struct core *core, struct task *task, const struct event *event)
{
    if (task->request.gpus == 0)
        return CORE_NOT_NOW; /* it has no GPU to give up */
    switch (event->kind) {
    case EVENT_SUSPEND:
        return apply_suspend(task);
    case EVENT_RESUME:
        return apply_resume(core, task);
    case EVENT_IDLE:
        return apply_idle(task);
    case EVENT_WAKE:
        return apply_wake(core, task);
    case EVENT_MOVE:
        return may_move_to(core, task, event) ? 0 : CORE_NOT_NOW;
    case EVENT_SUSPENDING:
        return apply_suspending(core, task, event);
    case EVENT_SUSPENDED:
        return apply_suspended(core, task, event);
    case EVENT_RELOCATING:
        return apply_relocating(task);
    case EVENT_RELOCATED:
        return apply_relocated(core, task, event);
    case EVENT_RESUMING:
        return apply_resuming(core, task, event);
    case EVENT_RESUMED:
        return apply_resumed(core, task, event);
    case EVENT_MOVING:
        return apply_moving(core, task, event);
    case EVENT_MOVED:
        return apply_moved(core, task, event);
    case EVENT_SUSPENSION_FAILED:
        return apply_suspension_failed(core, task, event);
    case EVENT_PAUSE:
        return apply_pause(core, task, event);
    case EVENT_CONTINUE:
        return apply_continue(core, task, event);
    case EVENT_MEMORY_WAIT:
        return apply_memory_wait(core, task, event);
    case EVENT_MEMORY_WAIT_END:
    case EVENT_MEMORY_ANSWER:
        return core_end_memory_wait(core, task, event->time_us);
    default:
        return CORE_NOT_NOW;
    }
}
