/* SPDX-License-Identifier: Apache-2.0 */
/* One scheduling pass: the recovery queue first, then the main queue in order of submission. */
#include <errno.h>
#include <string.h>

#include "core/core_private.h"
#include "core/sharing_choice.h"

/* Recovering tasks behind the first one that are looked at in one pass: a pass must stay short. */
#define RECOVERY_LOOKS 64
/* Of the main queue so many are in line, and so many of these may overtake in one pass, fewer on
 * many GPUs. */
#define LINE_MAX_TASKS      1024
#define OVERTAKING_LOOKS    64
#define OVERTAKING_VERDICTS (16 * OVERTAKING_LOOKS)

const struct policy *core_task_policy(const struct core *core, const struct task *task)
{
    return task->request.policy ? task->request.policy : core->settings.policy;
}

/*
 * What a task that ran out of memory wants free on each GPU next (thesis, section 7.2): a step more
 * for every crash than there was when it started, or than it was expected to need. 0: GPUs to
 * itself, as the last try always is.
 */
static double recovery_free_bytes(const struct core *core, const struct task *task)
{
    const struct core_settings *settings = &core->settings;
    const struct need *need = &task->request.need;
    bool is_last = task->oom_count >= settings->recoveries_max;
    if (task->oom_count == 0 || is_last || !settings->recovery_step_bytes ||
        !task->free_bytes.valid)
        return 0;
    double before = task->free_bytes.value;
    if (need->kind >= NEED_ESTIMATED && (double)need->bytes > before)
        before = (double)need->bytes;
    return before + (double)settings->recovery_step_bytes * task->oom_count;
}

static bool recovers_alone(const struct core *core, const struct task *task)
{
    return task->oom_count > 0 && recovery_free_bytes(core, task) <= 0;
}

struct placement_query core_query(const struct core *core, const struct task *task, int64_t now_us)
{
    return (struct placement_query){
        .view = &core->view,
        .conditions = &core->settings.conditions,
        .settings = &core->settings,
        .task = task,
        .head = core->reserved_for ? core_find_task(core, core->reserved_for) : NULL,
        .now_us = now_us,
        .idle_only = task->request.exclusive || recovers_alone(core, task) ||
                     core_task_policy(core, task)->exclusive_gpus,
        .recovery_free_bytes = recovery_free_bytes(core, task),
        .passes_reservation = task->queue == &core->recovery_queue,
    };
}

/* A task that has crashed beside others twice, and can be no better off than alone, is left alone
 * for life. */
static bool wants_whole_gpus(const struct core *core, const struct task *task)
{
    return task->request.exclusive || core_task_policy(core, task)->exclusive_gpus ||
           (task->oom_count > 1 && recovers_alone(core, task));
}

static int place(struct core *core, struct task *task, int64_t now_us)
{
    struct event event = {.kind = EVENT_PLACE, .time_us = now_us, .task = task->id};
    event.place.gpus = core->chosen;
    event.place.n = task->request.gpus;
    event.place.exclusive = wants_whole_gpus(core, task);
    event.place.share = sharing_choose(&core->settings, &core->view, task, core->chosen,
        task->request.gpus, event.place.exclusive);
    int r = core_decide(core, &event);
    for (int i = 0; i < task->n_gpus && r == 0; i++)
        r = core_record_external(core, task->gpus[i], now_us);
    return r < 0 ? r : core_add_effect(core, EFFECT_START, task->id, NULL);
}

static enum placement_answer ask_policy(struct core *core, const struct task *task, int64_t now_us)
{
    struct placement_query query = core_query(core, task, now_us);
    return core_task_policy(core, task)->choose(&query, core->chosen, core->verdicts);
}

/* Tells the driver why the first task of a queue waits, once for each change of the reasons (not of
 * their figures). */
static int note_wait(struct core *core, struct waiting *waiting, const struct task *task)
{
    uint64_t why = 14695981039346656037u; /* FNV-1a over the kinds and the tasks named */
    for (int i = 0; i < core->view.n_gpus; i++) {
        why = (why ^ (uint64_t)core->verdicts[i].kind) * 1099511628211u;
        why = (why ^ core->verdicts[i].task) * 1099511628211u;
    }
    if (waiting->task == task->id && waiting->why == why)
        return 0;
    *waiting = (struct waiting){task->id, why};
    return core_add_effect(core, EFFECT_WAIT, task->id, NULL);
}

/* Somebody who is not ours uses it, or something does that nobody knows of: no telling when it will
 * be idle. */
static bool is_held_by_strangers(const struct gpu_view *gpu, int64_t settle_us)
{
    if (gpu->external_processes.valid && gpu->external_processes.value > 0)
        return true;
    return gpu->n_residents == 0 && gpu->sampled_us - gpu->mix_since_us > settle_us &&
           !gpu_view_is_idle(gpu);
}

static bool may_drain(const struct core *core, int i, const struct task *task, int64_t now_us)
{
    const struct gpu_view *gpu = &core->view.gpus[i];
    return gpu->health == VIEW_OK &&
           now_us - gpu->sampled_us <= core->settings.conditions.sample_valid_us &&
           !is_held_by_strangers(gpu, core->settings.settle_us) &&
           cluster_view_suits(&core->view, i, task);
}

/* The GPU that will be idle first, as far as one can guess: the fewest tasks, then least memory in
 * use. */
static bool drains_sooner(const struct gpu_view *a, const struct gpu_view *b, bool keeps)
{
    if (keeps && !a->drained_for != !b->drained_for)
        return a->drained_for;
    if (a->n_residents != b->n_residents)
        return a->n_residents < b->n_residents;
    return reading_assume(a->mem_used_bytes, 1e18) < reading_assume(b->mem_used_bytes, 1e18);
}

/* Among the best `most` in order, by insertion. Returns how many there are now. */
static int insert_drain(
    const struct gpu_view *gpus, int *best, int n, int most, int gpu, bool keeps)
{
    int at = n;
    while (at > 0 && drains_sooner(&gpus[gpu], &gpus[best[at - 1]], keeps))
        at--;
    if (at == most)
        return n;
    int last = n < most ? n : most - 1;
    memmove(&best[at + 1], &best[at], (size_t)(last - at) * sizeof *best);
    best[at] = gpu;
    return n < most ? n + 1 : most;
}

static void keep_none(struct core *core)
{
    for (int i = 0; i < core->view.n_gpus && core->reserved_for; i++)
        core->view.gpus[i].reserved_for = 0;
    core->reserved_for = 0;
}

/* The GPUs chosen for a recovering task are kept for nobody else: for the first in line others will
 * be. */
static void keep_others(struct core *core, const struct task *task)
{
    bool any = false;
    for (int i = 0; i < task->request.gpus; i++)
        any |= core->view.gpus[core->chosen[i]].reserved_for != 0;
    if (any)
        keep_none(core);
}

/*
 * Keeps as many GPUs free of newcomers as the task wants, so that it starts even when the main
 * queue never runs dry. It stays with those GPUs unless enough others are empty already, and keeps
 * none while too few would do: GPUs must not stand idle for nothing.
 */
static void drain_for(struct core *core, const struct task *task, int64_t now_us)
{
    int n = 0, n_empty = 0, wanted = task->request.gpus;
    const struct gpu_view *gpus = core->view.gpus;
    for (int i = 0; i < core->view.n_gpus; i++)
        n_empty += gpus[i].n_residents == 0 && may_drain(core, i, task, now_us);
    for (int i = 0; i < core->view.n_gpus; i++)
        if (may_drain(core, i, task, now_us))
            n = insert_drain(gpus, core->chosen, n, wanted, i, n_empty < wanted);
    core_stop_draining(core);
    if (n < wanted)
        return;
    for (int i = 0; i < wanted; i++)
        core->view.gpus[core->chosen[i]].drained_for = task->id;
    core->drained_for = task->id;
    keep_others(core, task);
}

/* Those behind the first recovering task find no more GPUs than that. */
static int count_open(const struct core *core)
{
    int n = 0;
    bool empty_only = !core->settings.recovery_step_bytes;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        n += !gpu->drained_for && (gpu->n_residents == 0 || !empty_only);
    }
    return n;
}

static int place_recovering(struct core *core, struct task *task, int64_t now_us)
{
    keep_others(core, task);
    return place(core, task, now_us);
}

/* GPUs are kept free for the first recovering task; whoever is behind it may take others that are
 * idle now. */
static int schedule_first_recovering(struct core *core, struct task *task, int64_t now_us)
{
    if (core->drained_for != task->id)
        core_stop_draining(core);
    if (ask_policy(core, task, now_us) == PLACE_NOW)
        return place_recovering(core, task, now_us);
    int r = note_wait(core, &core->recovery_waiting, task);
    drain_for(core, task, now_us);
    return r;
}

static int schedule_recovery(struct core *core, int64_t now_us)
{
    struct task *next;
    int r = 0, looks = RECOVERY_LOOKS, n_open = 0;
    for (struct task *task = core->recovery_queue.first; task && r == 0; task = next) {
        next = task->next;
        if (task == core->recovery_queue.first)
            r = schedule_first_recovering(core, task, now_us);
        else if (looks-- == 0 || n_open == 0)
            return 0;
        else if (task->request.gpus > n_open || ask_policy(core, task, now_us) != PLACE_NOW)
            continue;
        else
            r = place_recovering(core, task, now_us);
        n_open = count_open(core);
    }
    return r;
}

/* ---- overtaking ---- */

/*
 * Chosen once for a task, when it comes to be the first in line, and again when a recovering task
 * takes one of them: what is kept only empties from then on.
 */
static bool keep_for(struct core *core, const struct task *task, int64_t now_us)
{
    if (core->reserved_for == task->id)
        return true;
    keep_none(core);
    struct placement_query query = core_query(core, task, now_us);
    if (!core_task_policy(core, task)
             ->reserve(&query, core->chosen, &core->view.reservation_start_us))
        return false;
    for (int i = 0; i < task->request.gpus; i++)
        core->view.gpus[core->chosen[i]].reserved_for = task->id;
    core->reserved_for = task->id;
    return true;
}

/* Are there enough GPUs for it, as things are? One that is lost may never come back. */
static bool can_be_served(const struct core *core, const struct task *task)
{
    int n = 0;
    for (int i = 0; i < core->view.n_gpus && n < task->request.gpus; i++)
        n += core->view.gpus[i].health == VIEW_OK && cluster_view_suits(&core->view, i, task);
    return n == task->request.gpus;
}

/* For whom the others would wait in vain cannot come before those who came before it. */
static bool may_go_first(const struct core *core, const struct task *task)
{
    return task->request.need.kind != NEED_PENDING && core_task_policy(core, task)->reserve &&
           can_be_served(core, task);
}

/*
 * Policies that let tasks overtake keep GPUs for the longest: what is large goes first, what is
 * small finds room beside it. Not so when the oldest does not say how long it takes, or so many
 * have passed_count it: then it is the first, as it is among equals. Whoever is behind it has been
 * passed_count by no more.
 */
struct task *core_head_of_queue(const struct core *core)
{
    struct task *first = core->main_queue.first, *task = first;
    if (!first || !core_task_policy(core, first)->reserve)
        return first;
    if (!first->request.expect.time_us || first->passed_count >= CORE_PASSED_MAX)
        return first;
    for (int n = 0; task && n < LINE_MAX_TASKS; task = task->next, n++)
        if (task->request.expect.time_us > first->request.expect.time_us &&
            may_go_first(core, task))
            first = task;
    return first;
}

/* Not known: the longest. */
static int64_t length_us(const struct task *task)
{
    return task->request.expect.time_us ? task->request.expect.time_us : INT64_MAX;
}

/* Those in line behind `first`, the shortest first; of equal ones who came first. Returns how many,
 * at most `most`. */
static int line_up(
    const struct core *core, const struct task *first, struct task **ret_line, int most)
{
    int n = 0, seen = 0;
    for (struct task *task = core->main_queue.first; task && seen < LINE_MAX_TASKS;
         task = task->next, seen++) {
        int at = n;
        if (task == first || task->request.need.kind == NEED_PENDING)
            continue;
        while (at > 0 && length_us(task) < length_us(ret_line[at - 1]))
            at--;
        if (at == most)
            continue;
        n += n < most;
        memmove(&ret_line[at + 1], &ret_line[at], (size_t)(n - 1 - at) * sizeof(struct task *));
        ret_line[at] = task;
    }
    return n;
}

/* Those behind the first task, which has to wait: each may start where the policies see it delayed
 * by nothing. */
static int overtake(struct core *core, const struct task *first, int64_t now_us)
{
    struct task *line[OVERTAKING_LOOKS];
    int r = 0, looks = 1 + OVERTAKING_VERDICTS / (core->view.n_gpus + 1);
    if (!core_task_policy(core, first)->reserve || !keep_for(core, first, now_us))
        return 0;
    int n = line_up(core, first, line, looks < OVERTAKING_LOOKS ? looks : OVERTAKING_LOOKS);
    for (int i = 0; i < n && r == 0; i++)
        if (ask_policy(core, line[i], now_us) == PLACE_NOW)
            r = place(core, line[i], now_us);
    return r;
}

/*
 * First in, first out: the first task that has to wait keeps those behind it waiting, so that none
 * is starved, unless its policy lets them overtake (policy/backfill.h has the rules).
 */
static int schedule_main(struct core *core, int64_t now_us)
{
    struct task *task;
    int r = 0;
    while (r == 0 && (task = core_head_of_queue(core))) {
        if (core->main_queue.first->request.need.kind == NEED_PENDING)
            return 0;
        if (core->reserved_for != task->id)
            keep_none(core);
        if (ask_policy(core, task, now_us) != PLACE_NOW) {
            r = note_wait(core, &core->main_waiting, task);
            return r < 0 ? r : overtake(core, task, now_us);
        }
        r = place(core, task, now_us);
    }
    keep_none(core);
    return r;
}

int core_schedule(struct core *core, int64_t now_us)
{
    int r = schedule_recovery(core, now_us);
    return r < 0 ? r : schedule_main(core, now_us);
}
