/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/overtaking.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "policy/foresee.h"
#include "policy/predict.h"

/* A task that wants more GPUs than that is not overtaken. */
enum { KEPT_MAX = 64 };

/* When a GPU is predicted to let a task in, and after how many of its residents have left. */
struct opening {
    int gpu;
    int64_t at_us;
    int leavers;
};

/* A GPU by itself, whose residents work on and leave. */
struct stage {
    struct gpu_view gpu;
    struct cluster_view view;
    struct resident residents[PREDICT_RESIDENTS_MAX + 1];
    double left_s[PREDICT_RESIDENTS_MAX +
                  1]; /* of the time that each takes alone; INFINITY: not known */
    double most[PREDICT_RESIDENTS_MAX + 1]; /* its speed on the slowest of its other GPUs */
    double passed_s;
};

/* As one who holds nobody off, on this GPU alone. Of what he needs, all is still to come where
 * nothing was seen of it.
 */
static struct resident by_itself(const struct resident *resident)
{
    struct resident copy = *resident;
    double taken = resident->settled ? (double)resident->need_bytes : 0;
    copy.mem_used_bytes = reading_of(reading_assume(resident->mem_used_bytes, taken));
    copy.settled = true;
    copy.gpus = 1;
    return copy;
}

static double time_s(int64_t time_us)
{
    return time_us ? (double)time_us / (double)SECOND_US : INFINITY;
}

static void solve(const struct stage *stage, double *ret_speeds)
{
    predict_speeds(&stage->gpu, ret_speeds);
    for (int i = 0; i < stage->gpu.n_residents; i++)
        ret_speeds[i] = fmin(ret_speeds[i], stage->most[i]);
}

/* At the speed that it has now since it came: who came and left meanwhile is not known. */
static double left_s(const struct resident *resident, double speed, int64_t now_us)
{
    double done_s = speed * (double)(now_us - resident->since_us) / (double)SECOND_US;
    return fmax(0, time_s(resident->expect.time_us) - done_s);
}

/* A sample may be older than the last who left: what those use who are there is what counts, unless
 * others are too. */
static void set_up(struct stage *stage, const struct placement_query *query, int place)
{
    const struct gpu_view *gpu = &query->view->gpus[place];
    double used = 0, speeds[PREDICT_RESIDENTS_MAX + 1];
    stage->gpu = *gpu;
    stage->gpu.residents = stage->residents;
    stage->view = (struct cluster_view){.gpus = &stage->gpu, .n_gpus = 1, .last_placed = -1};
    for (int i = 0; i < gpu->n_residents; i++) {
        stage->residents[i] = by_itself(&gpu->residents[i]);
        used += stage->residents[i].mem_used_bytes.value;
        stage->most[i] = predict_speed_elsewhere(query->view, place, &gpu->residents[i]);
    }
    stage->passed_s = 0;
    solve(stage, speeds);
    for (int i = 0; i < gpu->n_residents; i++)
        stage->left_s[i] = left_s(&gpu->residents[i], speeds[i], query->now_us);
    if (reading_assume(gpu->foreign_processes, 1) == 0)
        stage->gpu.mem_used_bytes = reading_of(used);
}

/* What was measured of all of them says nothing of who is left. */
static void forget_activity(struct gpu_view *gpu)
{
    gpu->smact_level = gpu->utilisation_level = READING_NONE;
}

static void add(struct stage *stage, const struct task *task, int64_t now_us)
{
    const struct need *need = &task->request.need;
    int n = stage->gpu.n_residents++;
    stage->most[n] = 1;
    stage->left_s[n] = fmin(
        time_s(task->request.expect.time_us), time_s(task->request.time_limit_us));
    stage->residents[n] = (struct resident){
        .task = task->id,
        .gpus = 1,
        .settled = true,
        .uid = task->uid,
        .sharing = task->request.sharing,
        .thread_percent = task->request.thread_percent,
        .since_us = now_us,
        .need_bytes = need->kind >= NEED_ESTIMATED ? need->bytes : stage->gpu.id.mem_total_bytes,
        .mem_used_bytes = reading_of(0),
        .expect = {task->request.expect.smact, task->request.expect.gract,
            task->request.expect.dram, .time_us = 0},
    };
    forget_activity(&stage->gpu);
}

static void send_away(struct stage *stage, int i)
{
    struct gpu_view *gpu = &stage->gpu;
    const struct resident *leaver = &stage->residents[i];
    if (gpu->mem_used_bytes.valid)
        gpu->mem_used_bytes.value -= reading_assume(leaver->mem_used_bytes, 0);
    gpu->n_residents--;
    memmove(&stage->residents[i], &stage->residents[i + 1],
        (size_t)(gpu->n_residents - i) * sizeof *leaver);
    memmove(&stage->left_s[i], &stage->left_s[i + 1],
        (size_t)(gpu->n_residents - i) * sizeof *stage->left_s);
    memmove(
        &stage->most[i], &stage->most[i + 1], (size_t)(gpu->n_residents - i) * sizeof *stage->most);
    forget_activity(gpu);
}

/* Until the next one leaves: of those of whom nothing is known, whom nobody outlasts, the first. */
static void go_on(struct stage *stage)
{
    int n = stage->gpu.n_residents, first = 0;
    double speeds[PREDICT_RESIDENTS_MAX + 1];
    solve(stage, speeds);
    for (int i = 1; i < n; i++)
        if (stage->left_s[i] / speeds[i] < stage->left_s[first] / speeds[first])
            first = i;
    double takes_s = stage->left_s[first] / speeds[first];
    stage->passed_s += takes_s;
    for (int i = 0; i < n && isfinite(takes_s); i++)
        stage->left_s[i] = fmax(0, stage->left_s[i] - speeds[i] * takes_s);
    send_away(stage, first);
}

static bool is_open(const struct placement_query *query, const struct stage *stage)
{
    struct task single;
    struct placement_query alone = *query;
    struct prediction prediction;
    if (stage->gpu.n_residents == 0)
        return true;
    if (query->idle_only || stage->gpu.whole_for)
        return false;
    if (query->task->request.gpus > 1) {
        single = *query->task;
        single.request.gpus = 1;
        alone.task = &single;
    }
    alone.view = &stage->view;
    predict_start(&prediction, &alone, &stage->view);
    return foresee_check_sharing(&alone, &prediction, 0).kind == VERDICT_FITS;
}

/* For query->task, with `newcomer` there too, unless NULL. */
static struct opening opening_of(
    const struct placement_query *query, int i, const struct task *newcomer)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    struct opening opening = {i, query->now_us, 0};
    struct stage stage;
    if (gpu->n_residents > PREDICT_RESIDENTS_MAX)
        return (struct opening){i, INT64_MAX, gpu->n_residents};
    set_up(&stage, query, i);
    if (newcomer)
        add(&stage, newcomer, query->now_us);
    for (; !is_open(query, &stage); opening.leavers++)
        go_on(&stage);
    opening.at_us = isfinite(stage.passed_s)
                        ? query->now_us + llround(stage.passed_s * (double)SECOND_US)
                        : INT64_MAX;
    return opening;
}

static bool opens_before(const struct opening *a, const struct opening *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->leavers < b->leavers;
}

static bool may_open(const struct placement_query *query, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    return gpu->health == VIEW_OK && !gpu->drained_for &&
           cluster_view_suits(query->view, i, query->task);
}

/* Among the best `most` in order, by insertion. Returns how many there are now. */
static int insert(struct opening *best, int n, int most, struct opening opening)
{
    int at = n;
    while (at > 0 && opens_before(&opening, &best[at - 1]))
        at--;
    if (at == most)
        return n;
    int last = n < most ? n : most - 1;
    memmove(&best[at + 1], &best[at], (size_t)(last - at) * sizeof *best);
    best[at] = opening;
    return n < most ? n + 1 : most;
}

bool overtaking_keep(const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us)
{
    int n = 0, wanted = query->task->request.gpus;
    struct opening best[KEPT_MAX];
    if (wanted > KEPT_MAX)
        return false;
    for (int i = 0; i < query->view->n_gpus; i++)
        if (may_open(query, i))
            n = insert(best, n, wanted, opening_of(query, i, NULL));
    if (n < wanted)
        return false;
    for (int i = 0; i < wanted; i++)
        ret_gpus[i] = best[i].gpu;
    *ret_start_us = best[wanted - 1].at_us;
    return true;
}

/* ---- who may pass ---- */

static bool is_for_another(const struct gpu_view *gpu, const struct task *task)
{
    return gpu->kept_for && gpu->kept_for != task->id;
}

/* The task for which a GPU is kept that the resident is on too, or 0. */
static uint64_t awaiting(const struct placement_query *query, const struct resident *resident)
{
    for (int i = 0; resident->gpus > 1 && i < resident->gpus; i++) {
        const struct gpu_view *gpu = &query->view->gpus[resident->places[i]];
        if (is_for_another(gpu, query->task))
            return gpu->kept_for;
    }
    return 0;
}

/* Somebody there would be slowed down on a kept GPU too. */
static uint64_t delays_elsewhere(
    const struct placement_query *query, struct prediction *prediction, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    for (int k = 0; k < gpu->n_residents; k++) {
        uint64_t first = awaiting(query, &gpu->residents[k]);
        if (first && predict_slows(prediction, i, &gpu->residents[k]))
            return first;
    }
    return 0;
}

static bool leaves_it_open(const struct placement_query *query, int i)
{
    struct placement_query of_first = *query;
    of_first.task = query->first;
    of_first.idle_only = query->first->request.exclusive;
    int64_t until_us = query->view->kept_until_us;
    if (query->view->gpus[i].n_residents >= PREDICT_RESIDENTS_MAX)
        return false;
    struct opening with = opening_of(&of_first, i, query->task);
    if (with.leavers == 0 || (until_us != INT64_MAX && with.at_us <= until_us))
        return true;
    return with.leavers == opening_of(&of_first, i, NULL).leavers;
}

uint64_t overtaking_delays(
    const struct placement_query *query, struct prediction *prediction, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    if (query->before_all)
        return 0;
    if (!is_for_another(gpu, query->task))
        return delays_elsewhere(query, prediction, i);
    bool harmless = query->first && query->first->id == gpu->kept_for && leaves_it_open(query, i);
    return harmless ? 0 : gpu->kept_for;
}
