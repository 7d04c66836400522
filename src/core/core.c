/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of the scheduler. core_step does to an event, in this order:
 *
 *   1. Apply (apply.c): the state changes as the event says. An event that does not suit the state
 *      is refused: nothing changes, and nothing below happens.
 *   2. React: the immediate consequences of an input. An exit becomes END, RECOVER or REQUEUE; a
 *      cancel of a waiting task becomes END, of a running one EFFECT_KILL; a tick expires tasks; a
 *      lost MIG instance evicts its tasks.
 *   3. After a replay, once: the reactions that the end of the log cut off.
 *   4. Judge dependencies on tasks that have ended (dependents.c), let tasks that may start now
 *      into their queue (eligible.c), record what users have used (users.c), if a period is over,
 *      and follow the schedule of first come, first served (fair_start.c).
 *   5. Schedule (schedule.c), if anything has changed that may let a task be placed.
 *
 * Every decision of 2 to 5 is itself an event. It goes through the same apply function and is left
 * as EFFECT_APPEND before the effects that depend on it (effects.c): the driver writes it to the
 * log, and only then starts or kills a process. So a log that is replayed through core_apply gives
 * the same state, whether the daemon was stopped before or after the effect was carried out.
 *
 * Idempotent: STARTED (it may be reported again after a restart), all effects but EFFECT_START, a
 * hold or cancel that is repeated (answered CORE_NOT_NOW). Fatal: a move of a task that its
 * life-cycle does not allow (task.c aborts the program). No memory (-ENOMEM): the step is
 * incomplete, and the driver has to end and replay its log.
 */
#include "core/core.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/units.h"
#include "core/core_private.h"
#include "core/pass.h"

/* core.h and view.h have the source of each. */
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
        .backfill = true,
        .suspension_cost = suspension_cost_default(),
        .order = ORDER_FAIR,
        .usage_half_life_us = 7 * 86400 * SECOND_US,
        .service_hold_us = 60 * SECOND_US,
        .slot_us = 600 * SECOND_US, /* chosen: a task of 20 GiB is suspended in a fifth of 5 % */
    };
}

static void set_constants(struct core *core)
{
    core->view.constants = core->settings.is_calibrated ? &core->settings.sharing_constants : NULL;
}

struct core *core_create(const struct core_settings *settings)
{
    struct core *core = calloc(1, sizeof *core);
    struct core_users *users = calloc(1, sizeof *users);
    if (!core || !users) {
        free(core);
        free(users);
        return NULL;
    }
    core->users = users;
    core->main_queue.total = &core->n_queued;
    core->settings = *settings;
    core->suspension_cost = settings->suspension_cost;
    core->view.last_placed = -1;
    set_constants(core);
    core_set_shares(core, settings->shares);
    return core;
}

static void gpu_view_fini(struct gpu_view *gpu)
{
    window_fini(&gpu->smact);
    window_fini(&gpu->utilisation);
    window_fini(&gpu->power);
    window_fini(&gpu->pcie);
    free(gpu->residents);
}

void core_destroy(struct core *core)
{
    if (!core)
        return;
    core_free_tasks(core);
    core_free_users(core);
    for (int i = 0; i < core->view.n_gpus; i++)
        gpu_view_fini(&core->view.gpus[i]);
    free(core->view.gpus);
    free(core->group_uses);
    free(core->advances);
    free(core->on_tasks.list);
    free(core->on_arrays.list);
    free(core->ended.list);
    free(core->openings.list);
    free(core->fifo.free_us);
    free(core->next_fifo.free_us);
    free(core->effects);
    free(core->chosen);
    free(core->view.open_bytes);
    free(core->view.distances);
    free(core->verdicts);
    free(core->outlooks);
    free(core);
}

void core_configure(struct core *core, const struct core_settings *settings)
{
    bool begins_to_preempt = settings->preempt && !core->settings.preempt;
    core_change_order(core, settings->order);
    core->settings = *settings;
    if (begins_to_preempt)
        core_doubt_fifo(core);
    set_constants(core);
    core_set_shares(core, settings->shares);
    core->planned = (struct planned){0};
    core->plan = (struct queue_plan){PLAN_NONE, 0};
    core->pass_needed = core->is_gate_open = true;
}

void core_set_node_check(struct core *core, const struct node_check *check)
{
    core->node_check = *check;
}

const struct node_check *core_node_check(const struct core *core)
{
    return core->node_check.ask ? &core->node_check : NULL;
}

/* ---- deciding what follows from an input ---- */

int core_end_task(struct core *core, uint64_t id, enum task_state state, int64_t now_us)
{
    struct event event = {.kind = EVENT_END, .time_us = now_us, .task = id, .end = state};
    int r = core_decide(core, &event);
    if (r == 0)
        core_note_early_end(core, core_find_task(core, id));
    return r;
}

/* If colloc ended the task, its state says why. Otherwise the exit decides: the shim ends a task at
 * its time limit while no daemon runs. */
static enum task_state final_state(const struct task *task)
{
    switch (task->ending ? task->ending : task->run->exit.failure) {
    case FAILURE_NONE:
        return TASK_COMPLETED;
    case FAILURE_CANCELLED:
    case FAILURE_DEPENDENCY:
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

/* A task that had its GPUs to itself, without a memory limit of colloc, would crash again. */
static bool may_recover(const struct core *core, const struct task *task)
{
    bool may_differ = task->had_coresidents || task->run->share.mem_limit_bytes > 0;
    return !task->ending && !task->request.once && task->run->exit.failure == FAILURE_GPU_OOM &&
           may_differ && task->oom_count <= core->settings.recoveries_max;
}

static bool may_requeue(const struct core *core, const struct task *task)
{
    return !task->ending && !task->request.once && task->not_at_fault &&
           task->requeue_count < core->settings.requeues_max;
}

static int after_exit(struct core *core, const struct task *task, int64_t now_us)
{
    struct event event = {.time_us = now_us, .task = task->id};
    if (may_recover(core, task)) {
        event.kind = EVENT_RECOVER;
    } else if (may_requeue(core, task)) {
        event.kind = EVENT_REQUEUE;
    } else if (core_may_restart(task)) {
        event.kind = EVENT_RESTART;
        event.restart_us = now_us + core_restart_delay_us(task);
    } else {
        return core_end_task(core, task->id, final_state(task), now_us);
    }
    return core_decide(core, &event);
}

/* The start of a STARTING task is under way: its STARTED leads to the kill. */
static int after_cancel(struct core *core, const struct task *task, int64_t now_us)
{
    if (task->state == TASK_STARTING)
        return 0;
    if (task_state_has_attempt(task->state))
        return core_kill_task(core, task);
    return core_end_task(core, task->id, TASK_CANCELLED, now_us);
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

static int64_t expires_us(const struct core *core, uint64_t id)
{
    const struct task *task = core_find_task(core, id);
    bool limited = !core->settings.expires_elsewhere && task && task->state == TASK_RUNNING &&
                   task->request.time_limit_us > 0;
    return limited ? task->started_us + task->run->yield.attempt_stopped_us +
                         task->request.time_limit_us
                   : TIME_NEVER;
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

/* Only tasks that hold GPUs can run out of time: these are the residents. */
static int expire_tasks(struct core *core, int64_t now_us)
{
    for (int i = 0; i < core->view.n_gpus && core->any_time_limit; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++) {
            uint64_t id = gpu->residents[k].task;
            int r = expires_us(core, id) <= now_us ? expire_task(core, id, now_us) : 0;
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* Which task may be backfilled depends on how long residents still run, and so on the time. Chosen:
 * a fraction of the shortest tasks, at little cost. */
#define BACKFILL_PERIOD_US (30 * SECOND_US)

/* Whether a task gives way depends on how long it has run, or the head has waited. */
static int64_t next_preemption_us(const struct core *core)
{
    bool may_give_way = core->settings.preempt || core->settings.make_room;
    return may_give_way && core_queued_count(core) > 0 ? core->last_pass_us + BACKFILL_PERIOD_US
                                                       : TIME_NEVER;
}

int64_t core_deadline_us(const struct core *core)
{
    int64_t earliest = core_retry_us(core), preemption_us = next_preemption_us(core);
    int64_t slot_us = core_slot_deadline_us(core);
    if (core->ended.n > 0 || core_is_fifo_marked(core))
        return 0;
    int64_t advance_us = core_advance_deadline_us(core, core->last_pass_us);
    earliest = advance_us < earliest ? advance_us : earliest;
    earliest = preemption_us < earliest ? preemption_us : earliest;
    if (core->blocked_queue.first && core->next_begin_us < earliest)
        earliest = core->next_begin_us;
    earliest = slot_us < earliest ? slot_us : earliest;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++) {
            int64_t expires = expires_us(core, gpu->residents[k].task);
            earliest = expires < earliest ? expires : earliest;
        }
    }
    return earliest;
}

/* The last task of a submission: an array's tasks have rising ids above its own. */
static uint64_t last_submitted(const struct event *submit)
{
    int n = submit->submit.n_elements;
    return n > 0 && submit->submit.elements ? submit->submit.elements[n - 1].task : submit->task;
}

static int react_to_input(struct core *core, const struct event *event)
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
    case EVENT_SUSPENSION_FAILED:
        return core_after_yield(core, task, event);
    default:
        return 0;
    }
}

/* A log may end between an input and the decision that follows from it. */
static int decide_leftovers(struct core *core, int64_t now_us)
{
    int r = 0;
    core->replayed = false;
    core_doubt_fifo(core);
    for (int i = 0; i < core->n_tasks && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (task->state == TASK_EXITED)
            r = after_exit(core, task, now_us);
        else if (task->ending && !task_state_is_done(task->state) &&
                 !task_state_has_attempt(task->state))
            r = core_end_task(core, task->id, TASK_CANCELLED, now_us);
        else
            r = core_decide_yield_leftovers(core, task, now_us);
    }
    core->ended.n = 0; /* the driver may have forgotten some of them */
    if (r == 0)
        r = core_note_past_ends(core, 0, UINT64_MAX);
    return r == 0 ? evict_all(core, now_us) : r;
}

int core_apply(struct core *core, const struct event *event)
{
    if (event->kind != EVENT_SAMPLE) /* applying one says whether a pass is needed */
        core->replayed = core->pass_needed = core->is_gate_open = true;
    return core_apply_event(core, event);
}

/* Most samples cannot let a task be placed: view_update.c lists those that can. Drains and backfill
 * depend on more. */
static bool needs_pass(const struct core *core, const struct event *event)
{
    if (event->kind != EVENT_SAMPLE || core->pass_needed || core->recovery_queue.first ||
        core->n_memory_waits || core->any_wanted ||
        core_advance_deadline_us(core, core->last_pass_us) <= event->time_us)
        return true;
    bool is_awaited = core->reserved_for || core->head_lacks_power;
    return is_awaited && event->time_us - core->last_pass_us >= BACKFILL_PERIOD_US;
}

int core_step(struct core *core, const struct event *event)
{
    bool was_replayed = core->replayed;
    core->n_effects = 0;
    if (!core_is_command_possible(core, event))
        return core_find_task(core, event->task) ? CORE_NOT_NOW : CORE_NO_SUCH_TASK;
    int r = core_apply_event(core, event);
    if (r == 0)
        r = react_to_input(core, event);
    if (r == 0 && was_replayed)
        r = decide_leftovers(core, event->time_us);
    if (r == 0)
        r = core_judge_dependencies(core, event->time_us);
    if (r == 0)
        r = core_admit_eligible(core, event->time_us);
    if (r == 0 && event->kind == EVENT_EXITED)
        r = core_record_usage_of(core, core_find_task(core, event->task)->uid, event->time_us);
    if (r == 0)
        r = core_record_usage(core, event->time_us);
    if (r == 0 && event->kind != EVENT_CANCEL) /* fair_start.c says why */
        r = core_update_fifo(core, event->time_us);
    if (r == 0 && needs_pass(core, event)) {
        core->pass_needed = false;
        core->last_pass_us = event->time_us;
        r = core_schedule(core, event->time_us);
    }
    return r;
}

/* ---- the state, for reading ---- */

const struct task_queue *core_recovery_queue(const struct core *core)
{
    return &core->recovery_queue;
}

const struct task_queue *core_suspended_queue(const struct core *core)
{
    return &core->suspended_queue;
}

const struct task_queue *core_blocked_queue(const struct core *core)
{
    return &core->blocked_queue;
}

bool core_wants_pass(const struct core *core)
{
    return core->pass_needed || core->recovery_queue.first || core_is_fifo_marked(core);
}

const struct cluster_view *core_view(const struct core *core)
{
    return &core->view;
}

const struct suspension_cost *core_suspension_cost(const struct core *core)
{
    return &core->suspension_cost;
}

const struct core_settings *core_get_settings(const struct core *core)
{
    return &core->settings;
}
