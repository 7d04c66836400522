/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates several orders of the queue, and chooses the best. In such a simulation (a rollout) the
 * first task of the order starts as soon as its policy places it, the others wait for it, and
 * residents continue at the speeds of the interference model until they end. No further task
 * arrives. The orders are those of core/queue_plan.h, and the best of them with each of some tasks
 * first.
 *
 * The best schedule is that of the smallest sum of
 *
 *   - the time until the last task ends, relative to the shortest;
 *   - 4 times the mean completion time of all tasks, waiting and running ones, relative to the
 *     shortest;
 *   - 4 times what the longest completion, relative to that under first come, first served
 *     (fifo_schedule.c), exceeds 1.5.
 *
 * The core backfills behind the head as always, which a rollout leaves out: tasks start no later
 * than in it, as far as the prediction goes.
 *
 * An example. Two GPUs that cannot be shared are free. Tasks of 60, 20 and 10 min wait. The
 * shortest first, they end after 10, 20 and 70 min, on average after 33 min. That of 60 min first,
 * and then the shortest, they end after 60, 10 and 30 min, on average after 33 min as well: the
 * last one ends 10 min sooner.
 */
#include "policy/lookahead.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/kind_speed.h"
#include "core/memory_domain.h"
#include "core/node_choice.h"
#include "core/queue_plan.h"
#include "core/sharing_choice.h"
#include "policy/policies.h"
#include "policy/stage.h"

/* Sums of the same numbers differ by less. Chosen: far below any difference that matters. */
#define ROUNDING   1e-9
#define LEFT_MIN_S 1 /* chosen: of a task that has overrun its expected time */

enum {
    GPUS_MAX = 16,    /* chosen: a server's */
    WAITING_MAX = 64, /* chosen: more are not planned */
    FIRST_MAX = 8,    /* chosen: tasks that are tried as the first */
    RESIDENTS_MAX = PREDICT_RESIDENTS_MAX + 1,
    ENTRIES_MAX = 128, /* chosen: more waiting and running tasks together are not planned */
    WORK_MAX = 60000   /* chosen: combinations of GPUs tried for one choice, some 20 ms */
};

/* Chosen on resampled traces (seeds 1001 to 1010): with 1 and 1, or 2 and 2, completion gains less
 * from preemption; with 8 and 1 the longest completion is longer. */
#define COMPLETION_WEIGHT 4
#define STRETCH_WEIGHT    4

/* A task that waits or runs. */
struct entry {
    const struct task *task;
    double left_s; /* its work */
    double speed;
    double end_s; /* since the beginning of the rollout */
    int gpus[GPUS_MAX];
    bool has_started, has_ended;
};

struct rollout {
    const struct core *core;
    int64_t now_us;
    double passed_s;
    struct cluster_view view;
    struct gpu_view gpus[GPUS_MAX];
    struct resident residents[GPUS_MAX][RESIDENTS_MAX];
    struct entry entries[ENTRIES_MAX];
    int n_entries;
    int64_t work; /* combinations of GPUs that were tried so far */
};

struct outcome {
    double end_s, mean_s, excess;
};

/* ---- the state ---- */

/* It points into itself. */
static void rollout_copy(const struct rollout *from, struct rollout *ret_copy)
{
    *ret_copy = *from;
    ret_copy->view.gpus = ret_copy->gpus;
    for (int i = 0; i < ret_copy->view.n_gpus; i++) {
        struct gpu_view *gpu = &ret_copy->gpus[i];
        gpu->residents = ret_copy->residents[i];
        for (int k = 0; k < gpu->n_residents; k++)
            for (int j = 0; j < ret_copy->n_entries; j++)
                if (ret_copy->entries[j].task->id == gpu->residents[k].task)
                    gpu->residents[k].places = ret_copy->entries[j].gpus;
    }
}

static struct entry *add_entry(struct rollout *rollout, const struct task *task)
{
    struct entry *entry = &rollout->entries[rollout->n_entries++];
    *entry = (struct entry){.task = task, .left_s = stage_expected_s(&task->request.expect)};
    return entry;
}

static struct entry *find_entry(struct rollout *rollout, uint64_t id)
{
    for (int i = 0; i < rollout->n_entries; i++)
        if (rollout->entries[i].task->id == id)
            return &rollout->entries[i];
    return NULL;
}

static bool is_predictable(const struct task *task)
{
    const struct expectation *expect = &task->request.expect;
    return expect->time_us.valid && expect->smact.valid && task->request.gpus <= GPUS_MAX &&
           task->request.need.kind >= NEED_ESTIMATED && !task->request.service.is_service;
}

static void set_speeds(struct rollout *rollout)
{
    double speeds[RESIDENTS_MAX];
    for (int j = 0; j < rollout->n_entries; j++)
        rollout->entries[j].speed = INFINITY;
    for (int i = 0; i < rollout->view.n_gpus; i++) {
        const struct gpu_view *gpu = &rollout->gpus[i];
        predict_gpu_speeds(rollout->view.constants, gpu, speeds);
        for (int k = 0; k < gpu->n_residents; k++) {
            struct entry *entry = find_entry(rollout, gpu->residents[k].task);
            double kind_speed = gpu->residents[k].kind_speed;
            entry->speed = fmin(entry->speed, speeds[k] * (kind_speed > 0 ? kind_speed : 1));
        }
    }
}

/* The GPU as it will be when its residents have all their memory. One without residents and of
 * unknown memory gets no task. Returns whether its residents can be predicted. */
static bool add_gpu(struct rollout *rollout, int i)
{
    const struct gpu_view *from = &core_view(rollout->core)->gpus[i];
    struct gpu_view *gpu = &rollout->gpus[i];
    bool is_known = from->n_residents <= PREDICT_RESIDENTS_MAX &&
                    (from->mem_used_bytes.valid || from->n_residents == 0);
    *gpu = *from;
    gpu->residents = rollout->residents[i];
    gpu->sampled_us = rollout->now_us;
    claims_drop(gpu->claims, CLAIMS_PASSING);
    for (int k = 0; k < from->n_residents && is_known; k++) {
        struct resident *resident = &gpu->residents[k];
        const struct task *task = core_task(rollout->core, from->residents[k].task);
        *resident = from->residents[k];
        resident->mem_used_bytes = reading_of(stage_held_bytes(resident));
        resident->residence = RESIDENCE_SETTLED;
        is_known = !resident->is_stopped && is_predictable(task) && resident->expect.smact.valid;
        struct entry *entry = find_entry(rollout, task->id);
        is_known &= rollout->n_entries < ENTRIES_MAX;
        if (entry || !is_known)
            continue;
        entry = add_entry(rollout, task);
        entry->has_started = true;
        memcpy(entry->gpus, task->gpus, (size_t)task->n_gpus * sizeof *entry->gpus);
    }
    return is_known;
}

/* The memory in use, once all GPUs have been added: some may share it. */
static void set_memory(struct rollout *rollout)
{
    for (int i = 0; i < rollout->view.n_gpus; i++) {
        struct gpu_view *gpu = &rollout->gpus[i];
        if (gpu->mem_used_bytes.valid)
            gpu->mem_used_bytes = stage_used_bytes(gpu);
    }
}

/* Changes the memory in use, of all places that share it. */
static void add_memory(struct gpu_view *gpu, double bytes)
{
    struct gpu_view *at = gpu;
    do {
        at->mem_used_bytes.value += bytes;
        at = memory_domain_next(at);
    } while (at != gpu);
}

/* Work that is done, as if the running tasks had always had their present speed. */
static void subtract_done_work(struct rollout *rollout)
{
    set_speeds(rollout);
    for (int j = 0; j < rollout->n_entries; j++) {
        struct entry *entry = &rollout->entries[j];
        double computed_s = (double)task_computed_us(entry->task, rollout->now_us) /
                            (double)SECOND_US;
        if (entry->has_started)
            entry->left_s = fmax(LEFT_MIN_S, entry->left_s - entry->speed * computed_s);
    }
}

/* The state of the core. Returns false if it cannot be predicted. */
static bool rollout_init(struct rollout *rollout, const struct core *core, int64_t now_us)
{
    const struct task *waiting[WAITING_MAX];
    int n_gpus = core_view(core)->n_gpus, n = core_queued_count(core);
    if (n_gpus > GPUS_MAX || n > WAITING_MAX || core_suspended_queue(core)->first ||
        core_recovery_queue(core)->first)
        return false;
    rollout->core = core;
    rollout->now_us = now_us;
    rollout->passed_s = rollout->n_entries = 0;
    rollout->work = 0;
    rollout->view = *core_view(core);
    rollout->view.gpus = rollout->gpus;
    rollout->view.open_bytes = NULL;
    rollout->view.reservation_start_us = START_UNKNOWN;
    for (int i = 0; i < n_gpus; i++)
        if (!add_gpu(rollout, i))
            return false;
    set_memory(rollout);
    subtract_done_work(rollout);
    n = core_list_waiting(core, waiting, WAITING_MAX);
    for (int i = 0; i < n; i++) {
        if (rollout->n_entries == ENTRIES_MAX || !is_predictable(waiting[i]) ||
            waiting[i]->queue != waiting[0]->queue)
            return false;
        add_entry(rollout, waiting[i]);
    }
    return true;
}

/* ---- a rollout ---- */

static struct entry *find_head(struct rollout *rollout, const struct queue_plan *plan)
{
    struct entry *head = NULL;
    for (int j = 0; j < rollout->n_entries; j++) {
        struct entry *entry = &rollout->entries[j];
        if (entry->has_started)
            continue;
        int priority = entry->task->request.priority;
        int of_head = head ? head->task->request.priority : priority - 1;
        if (priority > of_head ||
            (priority == of_head && queue_plan_is_before(plan, entry->task, head->task)))
            head = entry;
    }
    return head;
}

static void start_entry(struct rollout *rollout, struct entry *entry)
{
    const struct task *task = entry->task;
    double bytes = (double)task->request.need.bytes;
    bool is_exclusive = core_wants_exclusive_gpus(rollout->core, task);
    const struct sharing_mode share = sharing_choose(core_get_settings(rollout->core),
        &rollout->view, task, entry->gpus, task->request.gpus, is_exclusive);
    entry->has_started = true;
    for (int i = 0; i < task->request.gpus; i++) {
        struct gpu_view *gpu = &rollout->gpus[entry->gpus[i]];
        gpu->residents[gpu->n_residents++] = (struct resident){.task = task->id,
            .uid = task->uid,
            .gpus = task->request.gpus,
            .places = entry->gpus,
            .sharing = share.sharing,
            .thread_percent = share.thread_percent,
            .since_us = rollout->now_us,
            .need_bytes = reading_of(bytes),
            .mem_used_bytes = reading_of(bytes),
            .expect = task->request.expect,
            .residence = RESIDENCE_SETTLED,
            .promise.slowdown_max = reading_assume(task->request.slowdown_max, 0),
            .kind_speed = kind_speed_at(&rollout->view, task, entry->gpus[i])};
        add_memory(gpu, bytes);
        gpu->claims[CLAIM_EXCLUSIVE] = is_exclusive ? task->id : 0;
    }
}

/* For a task of several GPUs a policy may try each pair. */
static int64_t work_of(const struct rollout *rollout, const struct task *task)
{
    int64_t n = rollout->view.n_gpus;
    return task->request.gpus == 1 ? n : n * n / 2;
}

static bool place_entry(struct rollout *rollout, struct entry *entry)
{
    struct verdict verdicts[GPUS_MAX];
    const struct core_settings *settings = core_get_settings(rollout->core);
    const struct policy *policy = core_task_policy(rollout->core, entry->task);
    rollout->work += work_of(rollout, entry->task);
    const struct placement_query query = {.view = &rollout->view,
        .conditions = &settings->conditions,
        .settings = settings,
        .task = entry->task,
        .policy = policy,
        .now_us = rollout->now_us,
        .idle_only = core_wants_exclusive_gpus(rollout->core, entry->task),
        .is_unexplained = true,
        .node_check = core_node_check(rollout->core)};
    return node_choice_choose(policy, &query, entry->gpus, verdicts) == PLACE_NOW;
}

/* More residents are not predicted, nor is there room for them here. */
static bool may_start(const struct rollout *rollout, const struct entry *entry)
{
    for (int i = 0; i < entry->task->request.gpus; i++)
        if (rollout->gpus[entry->gpus[i]].n_residents >= PREDICT_RESIDENTS_MAX)
            return false;
    return true;
}

static void remove_resident(struct gpu_view *gpu, uint64_t id)
{
    struct resident *resident = gpu_view_resident(gpu, id);
    size_t n_behind = (size_t)(&gpu->residents[--gpu->n_residents] - resident);
    add_memory(gpu, -resident->mem_used_bytes.value);
    memmove(resident, resident + 1, n_behind * sizeof *resident);
    if (gpu->n_residents == 0)
        gpu->claims[CLAIM_EXCLUSIVE] = 0;
}

/* Lets time pass until the next task ends. Returns false if none runs. */
static bool rollout_advance(struct rollout *rollout)
{
    struct entry *next = NULL;
    set_speeds(rollout);
    for (int j = 0; j < rollout->n_entries; j++) {
        struct entry *entry = &rollout->entries[j];
        bool runs = entry->has_started && !entry->has_ended;
        if (runs && (!next || entry->left_s / entry->speed < next->left_s / next->speed))
            next = entry;
    }
    if (!next)
        return false;
    double time_s = next->left_s / next->speed;
    rollout->passed_s += time_s;
    for (int j = 0; j < rollout->n_entries; j++)
        if (rollout->entries[j].has_started && !rollout->entries[j].has_ended)
            rollout->entries[j].left_s -= rollout->entries[j].speed * time_s;
    next->has_ended = true;
    next->end_s = rollout->passed_s;
    for (int i = 0; i < next->task->request.gpus; i++)
        remove_resident(&rollout->gpus[next->gpus[i]], next->task->id);
    return true;
}

static double completion_s(
    const struct rollout *rollout, const struct entry *entry, int64_t since_us)
{
    return entry->end_s + (double)(rollout->now_us - since_us) / (double)SECOND_US;
}

static struct outcome outcome_of(const struct rollout *rollout)
{
    struct outcome outcome = {.end_s = rollout->passed_s};
    for (int j = 0; j < rollout->n_entries; j++) {
        const struct entry *entry = &rollout->entries[j];
        double fifo_s = (double)core_fifo_completion_us(entry->task) / (double)SECOND_US;
        double own_s = completion_s(rollout, entry, entry->task->fair_since_us);
        outcome.mean_s += completion_s(rollout, entry, entry->task->submitted_us) /
                          rollout->n_entries;
        if (fifo_s > 0)
            outcome.excess = fmax(outcome.excess, own_s / fifo_s - CORE_STRETCH_MAX);
    }
    return outcome;
}

/* Runs until all tasks have ended. Returns false if a task never starts, or a GPU would have too
 * many. */
static bool rollout_run(
    struct rollout *rollout, const struct queue_plan *plan, struct outcome *ret_outcome)
{
    struct entry *head;
    while ((head = find_head(rollout, plan))) {
        if (!place_entry(rollout, head)) {
            if (!rollout_advance(rollout))
                return false;
        } else if (may_start(rollout, head)) {
            start_entry(rollout, head);
        } else {
            return false;
        }
    }
    while (rollout_advance(rollout))
        ;
    *ret_outcome = outcome_of(rollout);
    return true;
}

/* ---- the choice ---- */

struct candidates {
    struct queue_plan plans[PLAN_ORDERS + FIRST_MAX];
    struct outcome outcomes[PLAN_ORDERS + FIRST_MAX];
    int n;
    int64_t work;
};

static void try_plan(struct candidates *candidates, const struct rollout *base,
    struct rollout *scratch, struct queue_plan plan)
{
    if (candidates->work > WORK_MAX)
        return;
    rollout_copy(base, scratch);
    if (rollout_run(scratch, &plan, &candidates->outcomes[candidates->n]))
        candidates->plans[candidates->n++] = plan;
    candidates->work += scratch->work;
}

/* A task that was submitted while preemption was off may have no latest start yet. */
static bool has_key(const struct rollout *base, enum plan_order order)
{
    for (int j = 0; j < base->n_entries && order == PLAN_LATEST_START; j++)
        if (!base->entries[j].has_started && base->entries[j].task->latest_start_us == 0)
            return false;
    return true;
}

static int best_of(const struct candidates *candidates)
{
    double end_s = INFINITY, mean_s = INFINITY, least = INFINITY;
    int best = -1;
    for (int i = 0; i < candidates->n; i++) {
        end_s = fmin(end_s, candidates->outcomes[i].end_s);
        mean_s = fmin(mean_s, candidates->outcomes[i].mean_s);
    }
    for (int i = 0; i < candidates->n; i++) {
        const struct outcome *outcome = &candidates->outcomes[i];
        double cost = outcome->end_s / end_s + COMPLETION_WEIGHT * outcome->mean_s / mean_s +
                      STRETCH_WEIGHT * outcome->excess;
        if (best < 0 || cost < least - ROUNDING) {
            least = cost;
            best = i;
        }
    }
    return best;
}

/* Tries the orders, then the best of them with other tasks first, as far as WORK_MAX reaches. */
static struct queue_plan choose_plan(const struct rollout *base, struct rollout *scratch)
{
    struct candidates candidates = {.n = 0};
    for (enum plan_order order = PLAN_NONE + 1; order < PLAN_ORDERS; order++)
        if (has_key(base, order))
            try_plan(&candidates, base, scratch, (struct queue_plan){order, 0});
    int best = best_of(&candidates), n_first = 0;
    if (best < 0)
        return (struct queue_plan){PLAN_NONE, 0};
    enum plan_order order = candidates.plans[best].order;
    for (int j = 0; j < base->n_entries && n_first < FIRST_MAX; j++) {
        const struct entry *entry = &base->entries[j];
        if (!entry->has_started) {
            try_plan(&candidates, base, scratch, (struct queue_plan){order, entry->task->id});
            n_first++;
        }
    }
    return candidates.plans[best_of(&candidates)];
}

int lookahead_plan(const struct core *core, int64_t now_us, struct queue_plan *ret_plan)
{
    CLEANUP_FREE struct rollout *base = malloc(sizeof *base);
    CLEANUP_FREE struct rollout *scratch = malloc(sizeof *scratch);
    *ret_plan = (struct queue_plan){PLAN_NONE, 0};
    if (!base || !scratch)
        return -ENOMEM;
    if (rollout_init(base, core, now_us))
        *ret_plan = choose_plan(base, scratch);
    return 0;
}
