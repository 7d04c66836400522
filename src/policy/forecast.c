/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stage (stage.h) for each GPU. The first task of the queue starts when as many of them admit
 * it as it wants; all stages then run on until that time, and the task is added to those. So is the
 * next task, which starts no earlier than the one before it.
 *
 * An example: GPU 0 runs a task that ends in 60 min, GPU 1 one that ends in 20 min, neither can be
 * shared. The queue has task 3 (2 GPUs, 30 min) and task 4 (1 GPU). Task 3 starts in 60 min, task 4
 * in 90 min.
 *
 * After a task of which the start is not known, because times of those that run are not, no other
 * start is known. Nor is any while tasks recover: they come first. CPUs, main memory and
 * reservations in advance are left out.
 */
#include "policy/forecast.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/top_k.h"
#include "core/kind_speed.h"
#include "policy/stage.h"

struct stages {
    const struct core *core;
    struct stage *of_gpu; /* one for each GPU */
    struct stage *trial;  /* scratch */
    double passed_s;      /* since `now_us` */
    int64_t now_us;
};

/* When a GPU admits a task. */
struct entrance {
    int gpu;
    double at_s; /* INFINITY: not known */
};

static struct placement_query query_of(const struct stages *stages, const struct task *task)
{
    const struct core_settings *settings = core_get_settings(stages->core);
    const struct policy *policy = task->request.policy ? task->request.policy : settings->policy;
    return (struct placement_query){.view = core_view(stages->core),
        .conditions = &settings->conditions,
        .settings = settings,
        .task = task,
        .policy = policy,
        .now_us = stages->now_us,
        .idle_only = task->request.exclusive || policy->exclusive_gpus};
}

static double find_entrance_s(
    const struct stages *stages, const struct placement_query *query, int gpu)
{
    struct stage *trial = stages->trial;
    stage_copy(&stages->of_gpu[gpu], trial);
    while (!stage_admits(query, trial)) {
        if (trial->gpu.n_residents == 0)
            return INFINITY;
        stage_advance(trial);
    }
    return fmax(trial->passed_s, stages->passed_s);
}

static bool is_sooner(const void *a, const void *b, const void *context)
{
    (void)context;
    const struct entrance *one = a, *other = b;
    return one->at_s < other->at_s;
}

static bool may_be_its(const struct stages *stages, const struct task *task, int gpu)
{
    const struct cluster_view *view = core_view(stages->core);
    return view->gpus[gpu].health == VIEW_OK && !view->gpus[gpu].drained_for &&
           view->gpus[gpu].n_residents <= PREDICT_RESIDENTS_MAX &&
           stages->of_gpu[gpu].gpu.n_residents <= PREDICT_RESIDENTS_MAX &&
           cluster_view_suits(view, gpu, task);
}

/* The GPUs that admit it first. Returns when the last of them does; INFINITY: it is not known. */
static double find_start_s(
    const struct stages *stages, const struct placement_query *query, struct entrance *ret_best)
{
    size_t n = 0, wanted = (size_t)query->task->request.gpus;
    for (int i = 0; i < query->view->n_gpus; i++) {
        if (!may_be_its(stages, query->task, i))
            continue;
        struct entrance entrance = {i, find_entrance_s(stages, query, i)};
        n = top_k_insert(ret_best, n, wanted, sizeof entrance, &entrance, is_sooner, NULL);
    }
    return n == wanted ? ret_best[wanted - 1].at_s : INFINITY;
}

static void run_all_until(struct stages *stages, int n_gpus, double at_s)
{
    stages->passed_s = at_s;
    for (int i = 0; i < n_gpus; i++)
        stage_run_until(&stages->of_gpu[i], at_s);
}

static void start_task(
    struct stages *stages, const struct placement_query *query, const struct entrance *entrances)
{
    for (int i = 0; i < query->task->request.gpus; i++) {
        struct stage *stage = &stages->of_gpu[entrances[i].gpu];
        double speed = kind_speed_at(query->view, query->task, entrances[i].gpu);
        stage_add_task(stage, query->task, speed, query->now_us);
        stage->gpu.exclusive_for = query->idle_only ? query->task->id : 0;
    }
}

static int64_t forecast_task(
    struct stages *stages, const struct task *task, struct entrance *entrances)
{
    struct placement_query query = query_of(stages, task);
    double start_s = find_start_s(stages, &query, entrances);
    if (isinf(start_s))
        return START_UNKNOWN;
    run_all_until(stages, query.view->n_gpus, start_s);
    start_task(stages, &query, entrances);
    return stages->now_us + llround(start_s * (double)SECOND_US);
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

int forecast_starts(const struct core *core, int64_t now_us, struct forecast *ret_starts)
{
    const struct task *waiting[FORECAST_TASKS_MAX];
    int n_gpus = core_view(core)->n_gpus, n = core_list_waiting(core, waiting, FORECAST_TASKS_MAX);
    struct stages stages = {.core = core, .now_us = now_us};
    struct entrance *entrances = calloc((size_t)n_gpus + 1, sizeof *entrances);
    stages.of_gpu = calloc((size_t)n_gpus + 1, sizeof *stages.of_gpu);
    stages.trial = calloc(1, sizeof *stages.trial);
    bool is_known = core_recovery_queue(core)->first == NULL;
    if (entrances && stages.of_gpu && stages.trial)
        init_stages(&stages);
    else
        n = -ENOMEM;
    for (int i = 0; i < n; i++) {
        bool may_start = is_known && waiting[i]->request.gpus <= n_gpus;
        ret_starts[i] = (struct forecast){waiting[i]->id,
            may_start ? forecast_task(&stages, waiting[i], entrances) : START_UNKNOWN};
        is_known &= ret_starts[i].start_us != START_UNKNOWN;
    }
    free(entrances);
    free(stages.of_gpu);
    free(stages.trial);
    return n;
}
