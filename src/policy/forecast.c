/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts when waiting tasks start. One stage (stage.h) for each GPU. The first task of the queue
 * starts when as many of them admit it as it wants; all stages then run on until that time, and the
 * task is added to those. So is the next task, which starts no earlier than the one before it. A
 * task with a begin moment takes its place in the queue at that moment, as in the core: if it comes
 * before the task that would start next, it is the next. In a cluster the GPUs of a task are of one
 * node, or of as many as it wants: core/node_choice.h searches them, as for a reservation. It calls
 * a copy of the task's policy, whose `reserve` answers from the stages.
 *
 * An example: GPU 0 runs a task that ends in 60 min, GPU 1 one that ends in 20 min, neither can be
 * shared. The queue has task 3 (2 GPUs, 30 min) and task 4 (1 GPU). Task 3 starts in 60 min, task 4
 * in 90 min. Task 5 (1 GPU, 10 min, of high priority) begins in 30 min: it starts then on GPU 1,
 * and the others start as before.
 *
 * After a task of unknown start, because times of running tasks are unknown, no other start is
 * known. No start is known while tasks recover: they come first. A task with a begin moment that
 * also waits for a dependency, or that a limit may keep out of the queue, has no known start, nor
 * has one behind tasks of the queue that are not forecast. CPUs, main memory, licences and
 * reservations in advance are left out; a node on which the task never runs is not.
 */
#include "policy/forecast.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/top_k.h"
#include "core/kind_speed.h"
#include "core/memory_domain.h"
#include "core/node_choice.h"
#include "policy/stage.h"

/* Chosen: predictions of one GPU for one task; in a large cluster fewer tasks are forecast. */
enum { PREDICTIONS_MAX = 64 * 1024 };

/* When a GPU admits a task. */
struct entrance {
    int gpu;
    double at_s; /* INFINITY: not known */
};

struct stages {
    struct policy policy; /* of the task in question, with `reserve` of this file */
    const struct core *core;
    struct stage *of_gpu;  /* one for each GPU */
    struct stage *trial;   /* scratch */
    struct entrance *best; /* scratch: one for each GPU */
    int *gpus;             /* likewise: those of the task */
    double passed_s;       /* from now_us to at_us */
    int64_t now_us;
    int64_t at_us; /* the stages have run on until then */
};

static bool reserve_by_stages(
    const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us);

/* The query's policy is that of the stages. */
static struct placement_query query_of(struct stages *stages, const struct task *task)
{
    const struct core_settings *settings = core_get_settings(stages->core);
    stages->policy = *(task->request.policy ? task->request.policy : settings->policy);
    stages->policy.reserve = reserve_by_stages;
    return (struct placement_query){.view = core_view(stages->core),
        .conditions = &settings->conditions,
        .settings = settings,
        .task = task,
        .policy = &stages->policy,
        .now_us = stages->now_us,
        .idle_only = task->request.exclusive || stages->policy.exclusive_gpus,
        .node_check = core_node_check(stages->core)};
}

static const struct stages *stages_of(const struct placement_query *query)
{
    return (const struct stages *)((const char *)query->policy - offsetof(struct stages, policy));
}

/* When the GPU admits the query's task; INFINITY: it is not known, or not before `bound_s`. */
static double find_entrance_s(
    const struct stages *stages, const struct placement_query *query, int gpu, double bound_s)
{
    struct stage *trial = stages->trial;
    if (stage_admits(query, &stages->of_gpu[gpu]))
        return stages->passed_s;
    stage_copy(&stages->of_gpu[gpu], trial);
    do {
        if (!stage_can_advance(trial) || trial->passed_s >= bound_s)
            return INFINITY;
        stage_advance(trial);
    } while (!stage_admits(query, trial));
    return fmax(trial->passed_s, stages->passed_s);
}

static bool is_sooner(const void *a, const void *b, const void *context)
{
    (void)context;
    const struct entrance *one = a, *other = b;
    return one->at_s < other->at_s;
}

static bool may_be_its(const struct stages *stages, const struct placement_query *query, int gpu)
{
    const struct gpu_view *view = &query->view->gpus[gpu];
    return view->n_residents <= PREDICT_RESIDENTS_MAX &&
           stages->of_gpu[gpu].gpu.n_residents <= PREDICT_RESIDENTS_MAX &&
           cluster_view_is_available(query->view, gpu, query->task, CLAIMS_DRAIN, NULL) &&
           placement_ask_node(query, gpu) != NODE_NEVER;
}

/* The GPUs that admit it first, of those that the query considers. */
static bool reserve_by_stages(
    const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us)
{
    const struct stages *stages = stages_of(query);
    struct entrance *best = stages->best;
    size_t n = 0, wanted = (size_t)placement_wanted(query);
    for (int i = query->first_gpu; i < placement_end_gpu(query); i++) {
        if (!may_be_its(stages, query, i))
            continue;
        double bound_s = n == wanted ? best[n - 1].at_s : INFINITY;
        struct entrance entrance = {i, find_entrance_s(stages, query, i, bound_s)};
        n = top_k_insert(best, n, wanted, sizeof entrance, &entrance, is_sooner, NULL);
    }
    if (n < wanted || isinf(best[wanted - 1].at_s))
        return false;
    for (size_t i = 0; i < wanted; i++)
        ret_gpus[i] = best[i].gpu;
    *ret_start_us = stages->now_us + llround(best[wanted - 1].at_s * (double)SECOND_US);
    return true;
}

static void run_all_until(struct stages *stages, int64_t at_us)
{
    int n_gpus = core_view(stages->core)->n_gpus;
    stages->at_us = at_us;
    stages->passed_s = (double)(at_us - stages->now_us) / (double)SECOND_US;
    for (int i = 0; i < n_gpus; i++)
        stage_run_until(&stages->of_gpu[i], stages->passed_s);
}

static void start_task(struct stages *stages, const struct placement_query *query)
{
    for (int i = 0; i < query->task->request.gpus; i++) {
        struct stage *stage = &stages->of_gpu[stages->gpus[i]];
        double speed = kind_speed_at(query->view, query->task, stages->gpus[i]);
        stage_add_task(stage, query->task, speed, query->now_us);
        stage->gpu.claims[CLAIM_EXCLUSIVE] = query->idle_only ? query->task->id : 0;
        const struct gpu_view *gpu = &query->view->gpus[stages->gpus[i]];
        for (const struct gpu_view *at = memory_domain_next(gpu); at != gpu;
             at = memory_domain_next(at))
            stage_add_other(
                &stages->of_gpu[at - query->view->gpus], query->task, speed, query->idle_only);
    }
}

/* Returns when the task starts if it is the next, or START_UNKNOWN; sets stages->gpus. */
static int64_t predict_start_us(struct stages *stages, const struct placement_query *query)
{
    int64_t start_us;
    if (query->task->request.gpus > query->view->n_gpus ||
        !node_choice_reserve(query->policy, query, stages->gpus, &start_us))
        return START_UNKNOWN;
    return start_us > stages->at_us ? start_us : stages->at_us;
}

static void init_stages(struct stages *stages)
{
    const struct cluster_view *view = core_view(stages->core);
    const struct placement_query query = {
        .view = view, .settings = core_get_settings(stages->core), .now_us = stages->now_us};
    for (int i = 0; i < view->n_gpus; i++)
        if (view->gpus[i].n_residents <= PREDICT_RESIDENTS_MAX)
            stage_init(&stages->of_gpu[i], &query, i);
}

/* ---- the order of the tasks ---- */

/* First `n_queued` tasks of the main queue in its order, then those that wait for their begin
 * moment, the earliest first. */
struct candidates {
    const struct task *tasks[FORECAST_TASKS_MAX];
    bool is_left_out[FORECAST_TASKS_MAX]; /* it has started, or may not at its begin moment */
    int n, n_queued;
    bool has_more; /* the main queue has tasks that are not among them */
};

/* How many tasks of each kind are forecast. */
static int count_forecast(int n_gpus, int most)
{
    int n = PREDICTIONS_MAX / (n_gpus + 1) + 1;
    return n < most ? n : most;
}

static void list_candidates(
    const struct core *core, int64_t now_us, struct candidates *ret_candidates)
{
    struct candidates *all = ret_candidates;
    int n_gpus = core_view(core)->n_gpus;
    *all = (struct candidates){.n = 0};
    all->n_queued = core_list_waiting(
        core, all->tasks, count_forecast(n_gpus, FORECAST_QUEUED_MAX));
    all->n = all->n_queued + core_list_begins(core, now_us, &all->tasks[all->n_queued],
                                 count_forecast(n_gpus, FORECAST_BEGINS_MAX));
    all->has_more = core_queued_count(core) > all->n_queued;
    for (int i = all->n_queued; i < all->n; i++)
        all->is_left_out[i] = !core_waits_for_begin_only(core, all->tasks[i]);
}

/* Returns which task is the head of the queue at that moment, or -1: the queue is empty. */
static int find_head(const struct core *core, const struct candidates *candidates, int64_t at_us)
{
    int head = -1;
    for (int i = 0; i < candidates->n; i++) {
        const struct task *task = candidates->tasks[i];
        bool is_queued = i < candidates->n_queued;
        if (candidates->is_left_out[i] || (!is_queued && task->request.begin_us > at_us))
            continue;
        if (head < 0 || (!is_queued && core_would_come_before(core, task, candidates->tasks[head])))
            head = i;
    }
    return head;
}

/* Returns the first begin moment after `at_us` of a task that then comes before the head; -1: there
 * is no head. TIME_NEVER: there is no such task. */
static int64_t find_next_begin_us(
    const struct core *core, const struct candidates *candidates, int64_t at_us, int head)
{
    for (int i = candidates->n_queued; i < candidates->n; i++) {
        const struct task *task = candidates->tasks[i];
        if (!candidates->is_left_out[i] && task->request.begin_us > at_us &&
            (head < 0 || core_would_come_before(core, task, candidates->tasks[head])))
            return task->request.begin_us;
    }
    return TIME_NEVER;
}

/* Starts the head, or lets time pass until another task is the head. Returns false when no further
 * start can be predicted. */
static bool advance_queue(
    struct stages *stages, struct candidates *candidates, struct forecast *starts)
{
    int head = find_head(stages->core, candidates, stages->at_us);
    int64_t begin_us = find_next_begin_us(stages->core, candidates, stages->at_us, head);
    if (head < 0) {
        if (begin_us != TIME_NEVER)
            run_all_until(stages, begin_us);
        return begin_us != TIME_NEVER;
    }
    struct placement_query query = query_of(stages, candidates->tasks[head]);
    int64_t start_us = predict_start_us(stages, &query);
    if (start_us == START_UNKNOWN)
        return false;
    if (begin_us <= start_us) {
        run_all_until(stages, begin_us);
        return true;
    }
    run_all_until(stages, start_us);
    start_task(stages, &query);
    starts[head].start_us = start_us;
    candidates->is_left_out[head] = true;
    return !candidates->has_more || head != candidates->n_queued - 1;
}

int forecast_starts(const struct core *core, int64_t now_us, struct forecast *ret_starts)
{
    struct candidates candidates;
    int n_gpus = core_view(core)->n_gpus;
    struct stages stages = {.core = core, .now_us = now_us, .at_us = now_us};
    stages.best = calloc((size_t)n_gpus + 1, sizeof *stages.best);
    stages.gpus = calloc((size_t)n_gpus + 1, sizeof *stages.gpus);
    stages.of_gpu = calloc((size_t)n_gpus + 1, sizeof *stages.of_gpu);
    stages.trial = calloc(1, sizeof *stages.trial);
    bool has_memory = stages.best && stages.gpus && stages.of_gpu && stages.trial;
    list_candidates(core, now_us, &candidates);
    for (int i = 0; i < candidates.n; i++)
        ret_starts[i] = (struct forecast){candidates.tasks[i]->id, START_UNKNOWN,
            i < candidates.n_queued ? START_UNKNOWN : candidates.tasks[i]->request.begin_us};
    if (has_memory && core_recovery_queue(core)->first == NULL) {
        init_stages(&stages);
        while (advance_queue(&stages, &candidates, ret_starts))
            ;
    }
    free(stages.best);
    free(stages.gpus);
    free(stages.of_gpu);
    free(stages.trial);
    return has_memory ? candidates.n : -ENOMEM;
}
