/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts when waiting tasks start. One stage (stage.h) for each GPU. The first task of the queue
 * starts when as many of them admit it as it wants; all stages then run on until that time, and the
 * task is added to those. So is the next task, which starts no earlier than the one before it. In a
 * cluster the GPUs of a task are of one node, or of as many as it wants: core/node_choice.h
 * searches them, as for a reservation. What it asks is a copy of the task's policy, of which
 * `reserve` answers by the stages.
 *
 * An example: GPU 0 runs a task that ends in 60 min, GPU 1 one that ends in 20 min, neither can be
 * shared. The queue has task 3 (2 GPUs, 30 min) and task 4 (1 GPU). Task 3 starts in 60 min, task 4
 * in 90 min.
 *
 * After a task of which the start is not known, because times of those that run are not, no other
 * start is known. Nor is any while tasks recover: they come first. CPUs, main memory, licences and
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
    struct entrance *best; /* scratch: as many as there are GPUs */
    int *gpus;             /* likewise: those of the task */
    double passed_s;       /* since `now_us` */
    int64_t now_us;
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
        if (trial->gpu.n_residents == 0 || trial->passed_s >= bound_s)
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
    return view->health == VIEW_OK && !view->drained_for &&
           view->n_residents <= PREDICT_RESIDENTS_MAX &&
           stages->of_gpu[gpu].gpu.n_residents <= PREDICT_RESIDENTS_MAX &&
           cluster_view_suits(query->view, gpu, query->task) &&
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

static void run_all_until(struct stages *stages, int n_gpus, double at_s)
{
    stages->passed_s = at_s;
    for (int i = 0; i < n_gpus; i++)
        stage_run_until(&stages->of_gpu[i], at_s);
}

static void start_task(struct stages *stages, const struct placement_query *query)
{
    for (int i = 0; i < query->task->request.gpus; i++) {
        struct stage *stage = &stages->of_gpu[stages->gpus[i]];
        double speed = kind_speed_at(query->view, query->task, stages->gpus[i]);
        stage_add_task(stage, query->task, speed, query->now_us);
        stage->gpu.exclusive_for = query->idle_only ? query->task->id : 0;
    }
}

static int64_t forecast_task(struct stages *stages, const struct task *task)
{
    struct placement_query query = query_of(stages, task);
    int64_t start_us;
    if (!node_choice_reserve(query.policy, &query, stages->gpus, &start_us))
        return START_UNKNOWN;
    run_all_until(
        stages, query.view->n_gpus, (double)(start_us - stages->now_us) / (double)SECOND_US);
    start_task(stages, &query);
    return start_us;
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

/* How many tasks are forecast. */
static int count_forecast(int n_gpus)
{
    int n = PREDICTIONS_MAX / (n_gpus + 1) + 1;
    return n < FORECAST_TASKS_MAX ? n : FORECAST_TASKS_MAX;
}

int forecast_starts(const struct core *core, int64_t now_us, struct forecast *ret_starts)
{
    const struct task *waiting[FORECAST_TASKS_MAX];
    int n_gpus = core_view(core)->n_gpus;
    int n = core_list_waiting(core, waiting, count_forecast(n_gpus));
    struct stages stages = {.core = core, .now_us = now_us};
    stages.best = calloc((size_t)n_gpus + 1, sizeof *stages.best);
    stages.gpus = calloc((size_t)n_gpus + 1, sizeof *stages.gpus);
    stages.of_gpu = calloc((size_t)n_gpus + 1, sizeof *stages.of_gpu);
    stages.trial = calloc(1, sizeof *stages.trial);
    bool is_known = core_recovery_queue(core)->first == NULL;
    if (stages.best && stages.gpus && stages.of_gpu && stages.trial)
        init_stages(&stages);
    else
        n = -ENOMEM;
    for (int i = 0; i < n; i++) {
        bool may_start = is_known && waiting[i]->request.gpus <= n_gpus;
        ret_starts[i] = (struct forecast){
            waiting[i]->id, may_start ? forecast_task(&stages, waiting[i]) : START_UNKNOWN};
        is_known &= ret_starts[i].start_us != START_UNKNOWN;
    }
    free(stages.best);
    free(stages.gpus);
    free(stages.of_gpu);
    free(stages.trial);
    return n;
}
