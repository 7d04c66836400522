/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides that a task gives way or is resumed: after users' commands, after the answers of the
 * driver, and when a suspended task finds a GPU. (suspension.h has the states, apply_yield.c
 * applies the decisions.)
 *
 * A task is suspended if the driver can do that, and otherwise paused. Suspended tasks come before
 * the main queue: they have been started already. The oldest is resumed first; while it finds no
 * GPU, younger ones may, but no task of the main queue starts, unless what it waits for is a
 * service (service.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "core/core_private.h"
#include "core/node_choice.h"

/* Chosen, to keep a pass short: suspended tasks that are tried in a pass. */
#define RESUME_TRIES_MAX 64

/* ---- what the driver can do ---- */

static bool is_on_instance(const struct core *core, const struct task *task)
{
    return *cluster_view_instance_of(&core->view, task);
}

static bool is_same_model(const struct core *core, int a, int b)
{
    return strcmp(core->view.gpus[a].id.name, core->view.gpus[b].id.name) == 0;
}

static bool is_on_several_models(const struct core *core, const struct task *task)
{
    for (int i = 1; i < task->n_gpus; i++)
        if (!is_same_model(core, task->gpus[0], task->gpus[i]))
            return true;
    return false;
}

/* The driver refuses clients of MPS and processes on MIG instances, and puts a process back only on
 * GPUs of the model that each was: a task on several models would have to wait for those. */
bool core_can_suspend(const struct core *core, const struct task *task)
{
    return core->settings.can_suspend && !task->run->yield.cannot_suspend &&
           task->run->share.sharing == SHARING_STREAMS && !is_on_instance(core, task) &&
           !is_on_several_models(core, task);
}

bool core_may_suspend(const struct core *core, const struct task *task, int64_t now_us)
{
    return core_can_suspend(core, task) && !task->request.service.is_service &&
           task->run->yield.retry_us <= now_us;
}

static int check_running(
    const struct task *task, uint64_t id, const char *what, struct fault *fault)
{
    if (!task)
        return fault_set(fault, ENOENT, "there is no task %" PRIu64, id);
    if (task->state != TASK_RUNNING || task->ending)
        return fault_set(fault, EBUSY, "task %" PRIu64 " is %s: only a running task can be %s", id,
            task_state_name(task->state), what);
    return 0;
}

static int refuse_suspension(
    const struct core *core, const struct task *task, const char *what, struct fault *fault)
{
    const char *why = "the driver refused to suspend it before";
    if (!core->settings.can_suspend)
        why = "this server cannot suspend tasks (`colloc doctor` says why)";
    else if (task->run->share.sharing == SHARING_MPS)
        why = "it is a client of MPS, which the driver cannot suspend";
    else if (is_on_instance(core, task))
        why = "it runs on a MIG instance, from which the driver cannot take it";
    else if (is_on_several_models(core, task))
        why = "its GPUs are of several models, and the driver puts a process back only on the same";
    return fault_set(fault, ENOTSUP, "task %" PRIu64 " cannot be %s: %s", task->id, what, why);
}

int core_check_suspend(const struct core *core, uint64_t id, struct fault *fault)
{
    const struct task *task = core_find_task(core, id);
    bool is_stopped = task && !task->ending && !task->run->yield.by_user &&
                      (task->state == TASK_PAUSED || task->state == TASK_SUSPENDING ||
                          task->state == TASK_SUSPENDED);
    int r = is_stopped ? 0 : check_running(task, id, "suspended", fault);
    if (r < 0 || is_stopped || core_can_suspend(core, task) || core->settings.can_pause)
        return r;
    return refuse_suspension(core, task, "suspended", fault);
}

/* The GPU memory that the running task holds or needs on each GPU. Not valid: neither is known. */
struct reading core_bytes_of(const struct core *core, const struct task *task)
{
    struct reading most = READING_NONE;
    if (task->request.need.kind >= NEED_ESTIMATED)
        most = reading_of((double)task->request.need.bytes);
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        struct reading used = gpu_view_resident(gpu, task->id)->mem_used_bytes;
        if (used.valid && (!most.valid || used.value > most.value))
            most = used;
    }
    return most;
}

/* What residents will take that have not risen, as far as is known. What was not seen has not been
 * taken: unlike admission (gpu_view_pending_bytes), which after settle_max_us takes it to be there,
 * a move must not be wrong. The driver loses a process that finds too little memory. */
static double promised_bytes(const struct gpu_view *gpu)
{
    double bytes = 0;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        if (!residence_has_risen(resident->residence))
            bytes += fmax(0, reading_assume(resident->need_bytes, 0) -
                                 reading_assume(resident->mem_used_bytes, 0));
    }
    return bytes;
}

int64_t core_yield_cost_us(const struct core *core, const struct task *task)
{
    const struct suspension_cost *cost = &core->suspension_cost;
    double bytes = reading_assume(core_bytes_of(core, task), 0);
    return suspension_time_us(cost, bytes) + resumption_time_us(cost, bytes);
}

/* The obstacle to moving the task to the GPU; NULL: none. */
static const char *why_not_moved(const struct core *core, const struct task *task, int to)
{
    const struct gpu_view *gpu = &core->view.gpus[to];
    struct reading bytes = core_bytes_of(core, task), free_bytes = gpu_view_free_bytes(gpu);
    if (!gpu->id.is_place || gpu->id.is_mig_instance)
        return "it is divided into MIG instances";
    if (gpu->health != VIEW_OK)
        return "it is lost, faulty or out of use";
    if (!is_same_model(core, task->gpus[0], to))
        return "it is of another model, on which the driver puts no process back";
    if (gpu_view_resident(gpu, task->id))
        return NULL;
    if (gpu->exclusive_for || (task->exclusive && gpu->n_residents))
        return "one of the two tasks has its GPU to itself";
    if (gpu->id.one_process && gpu->n_residents)
        return "its compute mode admits one process";
    if (!bytes.valid && !gpu_view_is_idle(gpu))
        return "how much memory the task holds is not known, and the GPU is not idle";
    if (!free_bytes.valid || free_bytes.value - promised_bytes(gpu) < bytes.value)
        return "too little of its memory is free";
    return NULL;
}

static int check_destination(
    const struct core *core, const struct task *task, int to, struct fault *fault)
{
    const char *why = why_not_moved(core, task, to);
    return why ? fault_set(fault, EBUSY, "task %" PRIu64 " cannot be moved to GPU %s: %s", task->id,
                     core->view.gpus[to].id.label, why)
               : 0;
}

int core_check_move(
    const struct core *core, uint64_t id, const int *gpus, int n, struct fault *fault)
{
    const struct task *task = core_find_task(core, id);
    int r = check_running(task, id, "moved", fault);
    if (r < 0)
        return r;
    if (!core_can_suspend(core, task))
        return refuse_suspension(core, task, "moved", fault);
    if (n != task->n_gpus)
        return fault_set(fault, EINVAL, "task %" PRIu64 " has %d GPU%s: name as many to move it to",
            id, task->n_gpus, task->n_gpus > 1 ? "s" : "");
    if (!core_are_gpus(core, gpus, n))
        return fault_set(fault, EINVAL, "there is no such GPU");
    for (int i = 0; i < n && r == 0; i++)
        r = check_destination(core, task, gpus[i], fault);
    return r;
}

static double left_bytes(const struct gpu_view *gpu)
{
    return reading_assume(gpu_view_free_bytes(gpu), 0) - promised_bytes(gpu);
}

bool core_can_take(const struct core *core, const struct task *task, double bytes, int gpu)
{
    const struct gpu_view *to = &core->view.gpus[gpu];
    struct fault fault;
    return !gpu_view_resident(to, task->id) && !to->drained_for && !to->closed_for &&
           left_bytes(to) >= bytes + (double)core->settings.conditions.margin_bytes &&
           core_check_move(core, task->id, &gpu, 1, &fault) == 0;
}

int core_find_destination(const struct core *core, const struct task *task, double bytes)
{
    double most = 0;
    int best = -1;
    for (int i = 0; i < core->view.n_gpus && task->n_gpus == 1; i++) {
        double left = left_bytes(&core->view.gpus[i]);
        if ((best < 0 || left > most) && core_can_take(core, task, bytes, i)) {
            most = left;
            best = i;
        }
    }
    return best;
}

bool core_is_command_possible(const struct core *core, const struct event *event)
{
    struct fault fault;
    if (event->kind == EVENT_SUSPEND)
        return core_check_suspend(core, event->task, &fault) == 0;
    if (event->kind == EVENT_MOVE)
        return core_check_move(core, event->task, event->yield.gpus, event->yield.n, &fault) == 0;
    return true;
}

/* ---- decisions ---- */

static int decide_effect(struct core *core, const struct event *event, enum effect_kind effect)
{
    int r = core_decide(core, event);
    return r < 0 ? r : core_add_effect(core, effect, event->task, NULL);
}

int core_stop_task(struct core *core, const struct task *task, enum yield_reason reason,
    uint64_t to_task, int64_t now_us)
{
    /* A service needs the GPU's time, not its memory: what could not be suspended is paused. */
    bool has_failed = reason == YIELD_TO_SERVICE && task->run->yield.failures > 0;
    bool can_suspend = core_can_suspend(core, task) && !(has_failed && core->settings.can_pause);
    struct event event = {.kind = can_suspend ? EVENT_SUSPENDING : EVENT_PAUSE,
        .time_us = now_us,
        .task = task->id,
        .yield = {.reason = reason, .to_task = to_task}};
    if (!can_suspend && !core->settings.can_pause)
        return 0;
    return decide_effect(core, &event, can_suspend ? EFFECT_SUSPEND : EFFECT_PAUSE);
}

/* What the driver reports, in whole bytes. It lists a process before it has memory: 0 is no
 * answer. */
static struct reading whole_bytes(struct reading bytes)
{
    return bytes.valid && bytes.value >= 1 ? reading_of((double)(int64_t)bytes.value)
                                           : READING_NONE;
}

int core_move_task(struct core *core, const struct task *task, const int *gpus,
    struct reading bytes, enum yield_reason reason, uint64_t to_task, int64_t now_us)
{
    struct event event = {.kind = EVENT_MOVING,
        .time_us = now_us,
        .task = task->id,
        .yield = {gpus, task->n_gpus, reason, to_task, whole_bytes(bytes)}};
    return decide_effect(core, &event, EFFECT_MOVE);
}

int core_continue_task(struct core *core, const struct task *task, int64_t now_us)
{
    struct event event = {.kind = EVENT_CONTINUE, .time_us = now_us, .task = task->id};
    return decide_effect(core, &event, EFFECT_CONTINUE);
}

/* A process that is being suspended, resumed or moved is ended after the answer; a frozen one could
 * not end by itself. */
int core_kill_task(struct core *core, const struct task *task)
{
    if (task_state_is_changing(task->state))
        return 0;
    int r = task->run->yield.is_frozen ? core_add_effect(core, EFFECT_CONTINUE, task->id, NULL) : 0;
    return r < 0 ? r : core_add_effect(core, EFFECT_KILL, task->id, NULL);
}

/* ---- what follows from an input ---- */

static int after_suspend(struct core *core, const struct task *task, int64_t now_us)
{
    return task->state == TASK_RUNNING ? core_stop_task(core, task, YIELD_TO_USER, 0, now_us) : 0;
}

static int after_resume(struct core *core, const struct task *task, int64_t now_us)
{
    bool is_paused = task->state == TASK_PAUSED && task->run->yield.reason == YIELD_TO_USER;
    return is_paused ? core_continue_task(core, task, now_us) : 0;
}

/* A task that is not suspended for it keeps its GPUs: a pause would free no memory. */
static int after_idle(struct core *core, const struct task *task, const struct event *idle)
{
    int64_t limit_us = core->settings.suspend_unused_us;
    bool is_long = limit_us > 0 && idle->idle_us >= limit_us;
    if (!is_long || task->ending || task->run->memory_wait.bytes ||
        !core_may_suspend(core, task, idle->time_us))
        return 0;
    return core_stop_task(core, task, YIELD_UNUSED, 0, idle->time_us);
}

/* A process that can never be resumed is ended, and its task run again. */
static int after_failure(struct core *core, const struct task *task, const struct event *failed)
{
    struct event evict = {.kind = EVENT_EVICT, .time_us = failed->time_us, .task = task->id};
    int r = 0;
    if (failed->suspension_failed.why == SUSPENSION_LOST && !task->ending)
        r = core_decide(core, &evict);
    return r == 0 && task->ending ? core_kill_task(core, task) : r;
}

int core_after_yield(struct core *core, const struct task *task, const struct event *event)
{
    switch (event->kind) {
    case EVENT_SUSPEND:
        return after_suspend(core, task, event->time_us);
    case EVENT_IDLE:
        return after_idle(core, task, event);
    case EVENT_RESUME:
        return after_resume(core, task, event->time_us);
    case EVENT_MOVE:
        return core_move_task(core, task, event->yield.gpus, core_bytes_of(core, task),
            YIELD_TO_USER, 0, event->time_us);
    case EVENT_SUSPENSION_FAILED:
        return after_failure(core, task, event);
    default: /* SUSPENDED, RESUMED, MOVED: of a task that was cancelled meanwhile? */
        return task->ending ? core_kill_task(core, task) : 0;
    }
}

/* The daemon may have ended before it carried out the effect of the state, or after. */
int core_repeat_effect(struct core *core, const struct task *task)
{
    static const int effects[TASK_STATES] = {
        [TASK_PAUSED] = EFFECT_PAUSE,
        [TASK_SUSPENDING] = EFFECT_SUSPEND,
        [TASK_RESUMING] = EFFECT_RESUME,
        [TASK_MOVING] = EFFECT_MOVE,
    };
    if (effects[task->state])
        return core_add_effect(core, (enum effect_kind)effects[task->state], task->id, NULL);
    bool may_be_frozen = task->state == TASK_RUNNING && task->run->yield.pauses;
    return may_be_frozen ? core_add_effect(core, EFFECT_CONTINUE, task->id, NULL) : 0;
}

int core_decide_yield_leftovers(struct core *core, const struct task *task, int64_t now_us)
{
    if (task->state == TASK_RUNNING && task->run->yield.by_user)
        return core_stop_task(core, task, YIELD_TO_USER, 0, now_us);
    if (task->state == TASK_PAUSED && !task->run->yield.by_user)
        return after_resume(core, task, now_us);
    return 0;
}

/* ---- a failing GPU ---- */

static int leave_failing_gpu(struct core *core, const struct task *task, int64_t now_us)
{
    struct reading bytes = core_bytes_of(core, task);
    bool may_move = bytes.valid && core_may_suspend(core, task, now_us);
    int gpu = may_move ? core_find_destination(core, task, bytes.value) : -1;
    if (gpu < 0)
        return 0;
    return core_move_task(core, task, &gpu, bytes, YIELD_GPU_FAILING, 0, now_us);
}

int core_empty_failing_gpus(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->view.n_gpus && core->settings.can_suspend && r == 0; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents && gpu->health == VIEW_FAULTY && r == 0; k++)
            r = leave_failing_gpu(core, core_find_task(core, gpu->residents[k].task), now_us);
    }
    return r;
}

/* ---- resuming ---- */

struct task core_as_waiting(const struct task *task)
{
    struct task waiting = *task;
    if (task->run->yield.bytes.valid)
        waiting.request.need = (struct need){NEED_ESTIMATED, (int64_t)task->run->yield.bytes.value};
    waiting.request.exclusive |= task->exclusive;
    return waiting;
}

static enum placement_answer choose_gpus(
    struct core *core, const struct task *task, bool passes_reservation, int64_t now_us)
{
    struct task waiting = core_as_waiting(task);
    struct placement_query query = core_query(core, &waiting, now_us);
    query.passes_reservation = passes_reservation;
    return node_choice_choose(core_task_policy(core, task), &query, core->chosen, core->verdicts);
}

int core_resume_task(struct core *core, const struct task *task, const int *gpus, int64_t now_us)
{
    struct event event = {.kind = EVENT_RESUMING,
        .time_us = now_us,
        .task = task->id,
        .yield = {.gpus = gpus, .n = task->request.gpus}};
    core_release_reservation(core); /* the GPUs predicted to admit the head first may be others */
    return decide_effect(core, &event, EFFECT_RESUME);
}

int core_try_resume(
    struct core *core, const struct task *task, bool passes_reservation, int64_t now_us)
{
    if (task->run->yield.retry_us > now_us ||
        choose_gpus(core, task, passes_reservation, now_us) != PLACE_NOW)
        return 0;
    return core_resume_task(core, task, core->chosen, now_us);
}

int core_schedule_suspended(struct core *core, int64_t now_us, bool *ret_waits)
{
    struct task *next;
    int r = 0, tries = RESUME_TRIES_MAX;
    *ret_waits = false;
    for (struct task *task = core->suspended_queue.first; task && r == 0 && tries--; task = next) {
        next = task->next;
        if (task->run->yield.retry_us > now_us || core_waits_for_turn(task))
            continue;
        if (choose_gpus(core, task, true, now_us) == PLACE_NOW)
            r = core_resume_task(core, task, core->chosen, now_us);
        else
            *ret_waits |= core_waits_for_room(core, task) && !core_waits_for_service(task);
    }
    return r;
}

int64_t core_retry_us(const struct core *core)
{
    int64_t earliest = TIME_NEVER;
    for (const struct task *task = core->suspended_queue.first; task; task = task->next)
        if (task->run->yield.retry_us > core->last_pass_us && task->run->yield.retry_us < earliest)
            earliest = task->run->yield.retry_us;
    return earliest;
}
