/* SPDX-License-Identifier: Apache-2.0 */
#include "core/core.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "core/core_private.h"

struct core_settings core_settings_default(void)
{
    return (struct core_settings){
        .conditions = {.smact_max = 0.80,
            .min_free_bytes = 5 * GIB,
            .margin_bytes = 2 * GIB,
            .sample_valid_us = 3 * SECOND_US,
            .tasks_per_gpu_max = 0,
            .slowdown_max = 3},
        .window_us = 90 * SECOND_US,
        .settle_us = 10 * SECOND_US,
        .settle_max_us = 60 * SECOND_US,
        .recoveries_max = 3,
        .requeues_max = 3,
        .filler_smact = 0.80,
        .filler_percent = 70,
        .mps_mem_limit = true,
    };
}

struct core *core_create(const struct core_settings *settings)
{
    struct core *core = calloc(1, sizeof *core);
    if (core) {
        core->settings = *settings;
        core->view.last_placed = -1;
    }
    return core;
}

static void gpu_view_fini(struct gpu_view *gpu)
{
    window_fini(&gpu->smact);
    window_fini(&gpu->utilisation);
    free(gpu->residents);
}

void core_destroy(struct core *core)
{
    if (!core)
        return;
    core_free_tasks(core);
    for (int i = 0; i < core->view.n_gpus; i++)
        gpu_view_fini(&core->view.gpus[i]);
    free(core->view.gpus);
    free(core->effects);
    free(core->chosen);
    free(core->verdicts);
    free(core);
}

void core_configure(struct core *core, const struct core_settings *settings)
{
    core->settings = *settings;
    core->pass_needed = true;
}

/* ---- effects ---- */

int core_add_effect(
    struct core *core, enum effect_kind kind, uint64_t task, const struct event *event)
{
    if (core_make_room((void **)&core->effects, &core->effects_room, core->n_effects,
            sizeof *core->effects) < 0)
        return -ENOMEM;
    struct effect *effect = &core->effects[core->n_effects++];
    *effect = (struct effect){.kind = kind, .task = task};
    if (event)
        effect->event = *event;
    return 0;
}

const struct effect *core_effects(const struct core *core, int *ret_n)
{
    *ret_n = core->n_effects;
    return core->effects;
}

int core_decide(struct core *core, const struct event *event)
{
    int r = core_apply_event(core, event);
    assert(r <= 0);
    if (r < 0)
        return r;
    struct event lasting = *event;
    if (event->kind == EVENT_PLACE)
        lasting.place.gpus = core_find_task(core, event->task)->gpus;
    return core_add_effect(core, EFFECT_APPEND, event->task, &lasting);
}

/* ---- deciding what follows from an input ---- */

static int end_task(struct core *core, uint64_t id, enum task_state state, int64_t now_us)
{
    struct event event = {.kind = EVENT_END, .time_us = now_us, .task = id, .end = state};
    return core_decide(core, &event);
}

/* What it was told counts; without that what its exit says, as when its time ran out while nobody
 * was there to tell. */
static enum task_state final_state(const struct task *task)
{
    switch (task->ending ? task->ending : task->exit.failure) {
    case FAILURE_NONE:
        return TASK_COMPLETED;
    case FAILURE_CANCELLED:
        return TASK_CANCELLED;
    case FAILURE_TIME_LIMIT:
        return TASK_TIMEOUT;
    case FAILURE_GPU_OOM:
    case FAILURE_HOST_OOM:
        return TASK_OUT_OF_MEMORY;
    default:
        return TASK_FAILED;
    }
}

/* Only a GPU memory crash beside others or under a limit of ours is worth another try, and not for
 * ever. */
static bool may_recover(const struct core *core, const struct task *task)
{
    bool by_others = task->had_coresidents || task->share.mem_limit_bytes > 0;
    return !task->ending && task->exit.failure == FAILURE_GPU_OOM && by_others &&
           task->oom_count <= core->settings.recoveries_max;
}

static bool may_requeue(const struct core *core, const struct task *task)
{
    return !task->ending && task->not_at_fault && task->requeue_count < core->settings.requeues_max;
}

static int after_exit(struct core *core, const struct task *task, int64_t now_us)
{
    struct event event = {.time_us = now_us, .task = task->id};
    if (may_recover(core, task)) {
        event.kind = EVENT_RECOVER;
    } else if (may_requeue(core, task)) {
        event.kind = EVENT_REQUEUE;
    } else {
        return end_task(core, task->id, final_state(task), now_us);
    }
    return core_decide(core, &event);
}

int core_record_external(struct core *core, int gpu, int64_t now_us)
{
    const struct gpu_view *view = &core->view.gpus[gpu];
    if (!view->external_processes.valid || view->external_processes.value == 0)
        return 0;
    for (int i = 0; i < view->n_residents; i++) {
        struct event event = {
            .kind = EVENT_EXTERNAL_SEEN, .time_us = now_us, .task = view->residents[i].task};
        int r = core_find_task(core, event.task)->had_coresidents ? 0 : core_decide(core, &event);
        if (r < 0)
            return r;
    }
    return 0;
}

/* STARTING is not ended here: the start is under way, and its STARTED brings the task back to be
 * killed. */
static int after_cancel(struct core *core, const struct task *task, int64_t now_us)
{
    if (task->state == TASK_ENDING)
        return core_add_effect(core, EFFECT_KILL, task->id, NULL);
    return task->state == TASK_STARTING ? 0 : end_task(core, task->id, TASK_CANCELLED, now_us);
}

static int after_started(struct core *core, const struct task *task)
{
    return task->ending ? core_add_effect(core, EFFECT_KILL, task->id, NULL) : 0;
}

static int after_unstarted(struct core *core, const struct task *task, int64_t now_us)
{
    return task->ending ? end_task(core, task->id, TASK_CANCELLED, now_us) : 0;
}

static int64_t expires_us(const struct task *task)
{
    bool limited = task && task->state == TASK_RUNNING && task->request.time_limit_us > 0;
    return limited ? task->started_us + task->request.time_limit_us : INT64_MAX;
}

static int expire(struct core *core, uint64_t id, int64_t now_us)
{
    struct event event = {.kind = EVENT_EXPIRE, .time_us = now_us, .task = id};
    int r = core_decide(core, &event);
    return r < 0 ? r : core_add_effect(core, EFFECT_KILL, id, NULL);
}

static int evict(struct core *core, uint64_t id, int64_t now_us)
{
    struct event event = {.kind = EVENT_EVICT, .time_us = now_us, .task = id};
    int r = core_find_task(core, id)->ending ? 0 : core_decide(core, &event);
    return r < 0 ? r : core_add_effect(core, EFFECT_KILL, id, NULL);
}

/* From instances that are gone: who has not noticed would be there for ever. */
static int evict_all(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->view.n_gpus && core->any_gone; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents && gpu->id.is_gone && r == 0; k++)
            r = evict(core, gpu->residents[k].task, now_us);
    }
    return r;
}

/* Only a task that has GPUs can run out of time: the residents are all that need looking at. */
static int expire_tasks(struct core *core, int64_t now_us)
{
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++) {
            uint64_t id = gpu->residents[k].task;
            int r = expires_us(core_find_task(core, id)) <= now_us ? expire(core, id, now_us) : 0;
            if (r < 0)
                return r;
        }
    }
    return 0;
}

int64_t core_deadline_us(const struct core *core)
{
    int64_t earliest = INT64_MAX;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++) {
            int64_t expires = expires_us(core_find_task(core, gpu->residents[k].task));
            earliest = expires < earliest ? expires : earliest;
        }
    }
    return earliest;
}

static int react(struct core *core, const struct event *event)
{
    struct task *task = core_find_task(core, event->task);
    switch (event->kind) {
    case EVENT_EXITED:
        return after_exit(core, task, event->time_us);
    case EVENT_CANCEL:
        return after_cancel(core, task, event->time_us);
    case EVENT_STARTED:
        return after_started(core, task);
    case EVENT_UNSTARTED:
        return after_unstarted(core, task, event->time_us);
    case EVENT_SAMPLE:
        return core_record_external(core, event->sample.gpu, event->time_us);
    case EVENT_GPUS:
        return evict_all(core, event->time_us);
    case EVENT_TICK:
        return expire_tasks(core, event->time_us);
    default:
        return 0;
    }
}

/* A log may end between an input and the decision that follows from it. */
static int decide_leftovers(struct core *core, int64_t now_us)
{
    int r = 0;
    core->replayed = false;
    for (int i = 0; i < core->n_tasks && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (task->state == TASK_EXITED)
            r = after_exit(core, task, now_us);
        else if (task->ending && !task_state_is_done(task->state) &&
                 !task_state_holds_gpus(task->state))
            r = end_task(core, task->id, TASK_CANCELLED, now_us);
    }
    return r == 0 ? evict_all(core, now_us) : r;
}

int core_apply(struct core *core, const struct event *event)
{
    core->replayed = core->pass_needed = true;
    return core_apply_event(core, event);
}

/* Who may overtake hangs on how long residents still take, and so on the time: looked at again so
 * often. */
#define OVERTAKING_AGAIN_US (30 * SECOND_US)

/*
 * Most samples let nobody in: they say what the last one said, or that residents have taken memory.
 * Only which GPUs are drained for a task hangs on more, and who may overtake.
 */
static bool is_worth_a_pass(const struct core *core, const struct event *event)
{
    if (event->kind != EVENT_SAMPLE || core->pass_needed || core->recovery_queue.first)
        return true;
    return core->reserved_for && event->time_us - core->last_pass_us >= OVERTAKING_AGAIN_US;
}

int core_step(struct core *core, const struct event *event)
{
    core->n_effects = 0;
    int r = core_apply_event(core, event);
    if (r == 0)
        r = react(core, event);
    if (r == 0 && core->replayed)
        r = decide_leftovers(core, event->time_us);
    if (r == 0 && is_worth_a_pass(core, event)) {
        core->pass_needed = false;
        core->last_pass_us = event->time_us;
        r = core_schedule(core, event->time_us);
    }
    return r;
}

/* ---- looking ---- */

const struct task_queue *core_main_queue(const struct core *core)
{
    return &core->main_queue;
}

const struct task_queue *core_recovery_queue(const struct core *core)
{
    return &core->recovery_queue;
}

const struct cluster_view *core_view(const struct core *core)
{
    return &core->view;
}

const struct core_settings *core_get_settings(const struct core *core)
{
    return &core->settings;
}
