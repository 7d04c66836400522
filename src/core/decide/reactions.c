/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The immediate consequences of an input: a cancel of a waiting task becomes END, of a running one
 * EFFECT_KILL, as a request to run it again; a tick expires tasks; a lost MIG instance evicts its
 * tasks. decide/ends.c has what follows from an exit, decide/yield_reactions.c what follows where a
 * task gives way.
 *
 * A log may end between an input and the decision that follows from it. After a replay each task's
 * state shows what is missing, and it is decided then.
 */
#include "core/decide/reactions.h"

#include "core/ask/deadline.h"
#include "core/decide/early_stop.h"
#include "core/decide/effects.h"
#include "core/decide/ends.h"
#include "core/decide/give_way.h"
#include "core/decide/yield_reactions.h"
#include "core/state/fifo_marks.h"
#include "core/state/noted_ends.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* The start of a STARTING task is under way: its STARTED leads to the kill. */
static int after_cancel(struct core *core, const struct task *task, int64_t now_us)
{
    if (task->state == TASK_STARTING)
        return 0;
    if (task_state_has_attempt(task->state))
        return core_kill_task(core, task);
    return core_end_task(core, task->id, TASK_CANCELLED, now_us);
}

/* Its EXITED requeues it. */
static int after_run_again(struct core *core, const struct task *task)
{
    return task->state == TASK_STARTING ? 0 : core_kill_task(core, task);
}

static int after_started(struct core *core, const struct task *task)
{
    int r = core_repeat_effect(core, task);
    return r == 0 && task->ending ? core_kill_task(core, task) : r;
}

static int after_unstarted(struct core *core, const struct task *task, int64_t now_us)
{
    return task->ending ? core_end_task(core, task->id, TASK_CANCELLED, now_us) : 0;
}

static int expire_task(struct core *core, uint64_t id, int64_t now_us)
{
    struct event event = {.kind = EVENT_EXPIRE, .time_us = now_us, .task = id};
    int r = core_decide(core, &event);
    return r < 0 ? r : core_add_effect(core, EFFECT_KILL, id, NULL);
}

static int evict_task(struct core *core, uint64_t id, int64_t now_us)
{
    struct event event = {.kind = EVENT_EVICT, .time_us = now_us, .task = id};
    const struct task *task = core_find_task(core, id);
    int r = task->ending ? 0 : core_decide(core, &event);
    return r < 0 ? r : core_kill_task(core, task);
}

/* Ends the suspended tasks whose contexts or copies were on a GPU that the driver reports lost:
 * they can come back to no other. A GPU that is not listed may be listed again. */
static int evict_absent(struct core *core, const struct core_sample *sample, int64_t now_us)
{
    const struct gpu_view *gpu = &core->view.gpus[sample->gpu];
    int r = 0;
    for (int i = 0; i < gpu->n_absent && r == 0; i++)
        if (!core_find_task(core, gpu->absent[i].task)->ending)
            r = evict_task(core, gpu->absent[i].task, now_us);
    for (int i = 0; i < gpu->n_copies && r == 0; i++)
        if (gpu->copies[i].is_there && !core_find_task(core, gpu->copies[i].task)->ending)
            r = evict_task(core, gpu->copies[i].task, now_us);
    return r;
}

static int after_sample(struct core *core, const struct core_sample *sample, int64_t now_us)
{
    int r = core_record_external(core, sample->gpu, now_us);
    return r == 0 && sample->lost ? evict_absent(core, sample, now_us) : r;
}

/* Ends the tasks on removed MIG instances. They get no error, and would run without end. */
static int evict_all(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->view.n_gpus && core->any_gone; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents && gpu->id.is_gone && r == 0; k++)
            r = evict_task(core, gpu->residents[k].task, now_us);
    }
    return r;
}

/* Tasks without a GPU are residents of none. */
static int expire_on_host(struct core *core, int64_t now_us)
{
    int r = 0;
    for (size_t i = 0; i < core->on_host.n && core->any_time_limit && r == 0; i++) {
        uint64_t id = core->on_host.list[i];
        r = core_expires_us(core, id) <= now_us ? expire_task(core, id, now_us) : 0;
    }
    return r;
}

/* Only tasks that hold GPUs, or need none, can run out of time: the former are the residents. */
static int expire_tasks(struct core *core, int64_t now_us)
{
    for (int i = 0; i < core->view.n_gpus && core->any_time_limit; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++) {
            uint64_t id = gpu->residents[k].task;
            int r = core_expires_us(core, id) <= now_us ? expire_task(core, id, now_us) : 0;
            if (r < 0)
                return r;
        }
    }
    return expire_on_host(core, now_us);
}

/* The last task of a submission: an array's tasks have rising ids above its own. */
static uint64_t last_submitted(const struct event *submit)
{
    int n = submit->submit.n_elements;
    return n > 0 && submit->submit.elements ? submit->submit.elements[n - 1].task : submit->task;
}

static int react_to(struct core *core, const struct event *event)
{
    struct task *task = core_find_task(core, event->task);
    switch (event->kind) {
    case EVENT_EXITED:
        return core_after_exit(core, task, event->time_us);
    case EVENT_CANCEL:
        return after_cancel(core, task, event->time_us);
    case EVENT_RUN_AGAIN:
        return after_run_again(core, task);
    case EVENT_STARTED:
        return after_started(core, task);
    case EVENT_METRIC:
        return core_stop_if_losing(core, core_find_task(core, event->metric.task), event->time_us);
    case EVENT_UNSTARTED:
        return after_unstarted(core, task, event->time_us);
    case EVENT_GPUS:
        return evict_all(core, event->time_us);
    case EVENT_TICK:
        return expire_tasks(core, event->time_us);
    case EVENT_SUBMIT:
        return core_note_past_ends(core, event->task, last_submitted(event));
    case EVENT_UPDATE:
        return event->update.sets_after ? core_note_past_ends(core, task->id, task->id) : 0;
    case EVENT_DEPENDENCY:
        return task->ending ? core_end_task(core, task->id, TASK_CANCELLED, event->time_us) : 0;
    case EVENT_SUSPEND:
    case EVENT_RESUME:
    case EVENT_IDLE:
    case EVENT_MOVE:
    case EVENT_SUSPENDED:
    case EVENT_RESUMED:
    case EVENT_MOVED:
    case EVENT_RELOCATED:
    case EVENT_SUSPENSION_FAILED:
        return core_after_yield(core, task, event);
    default:
        return 0;
    }
}

int core_react_to_input(struct core *core, const struct event *event)
{
    if (event->kind == EVENT_SAMPLE) /* mostly, and of no task */
        return after_sample(core, &event->sample, event->time_us);
    return react_to(core, event);
}

int core_decide_leftovers(struct core *core, int64_t now_us)
{
    int r = 0;
    core->replayed = false;
    core_doubt_fifo(core);
    for (int i = 0; i < core->n_tasks && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (task->state == TASK_EXITED)
            r = core_after_exit(core, task, now_us);
        else if (task->ending && !task_state_is_done(task->state) &&
                 !task_state_has_attempt(task->state))
            r = core_end_task(core, task->id, TASK_CANCELLED, now_us);
        else if ((r = core_decide_yield_leftovers(core, task, now_us)) == 0)
            r = core_stop_if_losing(core, task, now_us);
    }
    core->ended.n = 0; /* the driver may have forgotten some of them */
    if (r == 0)
        r = core_note_past_ends(core, 0, UINT64_MAX);
    return r == 0 ? evict_all(core, now_us) : r;
}
