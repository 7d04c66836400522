/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/predict.h"

#include <math.h>
#include <stddef.h>

#include "core/share.h"
#include "sharing/solved.h"

/* Speeds that were solved for anew differ by less. */
#define ROUNDING 1e-6

/*
 * Progress of all, in GPUs: sum over tasks of speed x GPUs. A newcomer adds its own and takes from
 * those beside it; where sharing lets a GPU do more than one task can ask of it, the sum grows, and
 * gain is by how much for each GPU taken.
 */
static struct sharer sharer_of(
    const struct expectation *expect, enum sharing sharing, int thread_percent)
{
    struct demand demand = {reading_assume(expect->gract, NAN), reading_assume(expect->smact, 1),
        NAN, reading_assume(expect->dram, NAN), 0};
    demand_complete(&demand, 0);
    return (struct sharer){
        .demand = demand, .mps = sharing != SHARING_STREAMS, .cap = thread_percent / 100.0};
}

static void gather(const struct gpu_view *gpu, struct sharer *ret_sharers)
{
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        ret_sharers[i] = sharer_of(&resident->expect, resident->sharing, resident->thread_percent);
    }
}

static void solve(struct sharer *sharers, int n, double *ret_speeds)
{
    sharing_solve_measured(sharers, n);
    for (int i = 0; i < n; i++)
        ret_speeds[i] = sharers[i].speed;
}

void predict_speeds(const struct gpu_view *gpu, double *ret_speeds)
{
    struct sharer sharers[PREDICT_RESIDENTS_MAX + 1];
    gather(gpu, sharers);
    solve(sharers, gpu->n_residents, ret_speeds);
}

double predict_speed_elsewhere(
    const struct cluster_view *view, int gpu, const struct resident *resident)
{
    double speed = 1, speeds[PREDICT_RESIDENTS_MAX + 1];
    for (int i = 0; i < resident->gpus && resident->gpus > 1; i++) {
        const struct gpu_view *there = &view->gpus[resident->places[i]];
        const struct resident *here = gpu_view_resident(there, resident->task);
        if (resident->places[i] == gpu || !here || there->n_residents > PREDICT_RESIDENTS_MAX)
            continue;
        predict_speeds(there, speeds);
        speed = fmin(speed, speeds[here - there->residents]);
    }
    return speed;
}

void predict_start(struct prediction *prediction, const struct placement_query *query,
    const struct cluster_view *view)
{
    prediction->query = query;
    prediction->view = view;
    for (int i = 0; i < PREDICT_KEPT; i++)
        prediction->of[i] = -1;
}

/* As the core will decide it once these GPUs are the task's. */
static struct sharing_mode share_of(const struct prediction *prediction, const int *gpus, int n)
{
    const struct placement_query *query = prediction->query;
    const struct task_request *request = &query->task->request;
    if (request->sharing == SHARING_AUTO && query->settings)
        return share_choose(query->settings, prediction->view, query->task, gpus, n, false);
    return (struct sharing_mode){
        .sharing = request->sharing, .thread_percent = request->thread_percent};
}

/* Of a GPU with no more residents than are looked at. Good until that of another GPU is asked for.
 */
static const struct mix *mix_at(
    struct prediction *prediction, int gpu, const struct sharing_mode *share)
{
    int slot = gpu % PREDICT_KEPT;
    const struct gpu_view *there = &prediction->view->gpus[gpu];
    struct mix *mix = &prediction->mixes[slot];
    bool is_known = prediction->of[slot] == gpu;
    if (is_known && mix->share.sharing == share->sharing &&
        mix->share.thread_percent == share->thread_percent)
        return mix;
    const struct expectation *expect = &prediction->query->task->request.expect;
    struct sharer sharers[PREDICT_RESIDENTS_MAX + 1];
    gather(there, sharers);
    if (!is_known)
        solve(sharers, there->n_residents, mix->before);
    sharers[there->n_residents] = sharer_of(expect, share->sharing, share->thread_percent);
    solve(sharers, there->n_residents + 1, mix->after);
    mix->share = *share;
    prediction->of[slot] = gpu;
    return mix;
}

static bool is_among(int gpu, const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        if (gpus[i] == gpu)
            return true;
    return false;
}

struct change {
    double before, after;
};

static struct change change_at(struct prediction *prediction, const struct sharing_mode *share,
    const struct resident *resident, int gpu, bool joined)
{
    const struct gpu_view *there = &prediction->view->gpus[gpu];
    const struct resident *here = gpu_view_resident(there, resident->task);
    if (!here || there->n_residents > PREDICT_RESIDENTS_MAX)
        return (struct change){INFINITY, INFINITY};
    const struct mix *mix = mix_at(prediction, gpu, share);
    double before = mix->before[here - there->residents],
           after = mix->after[here - there->residents];
    return (struct change){before, joined ? after : before};
}

/* Of a resident of the GPU `at`, which the task joins as it does gpus[], wherever else it is too.
 */
static struct change change_of(struct prediction *prediction, const struct sharing_mode *share,
    const int *gpus, int n, int at, const struct resident *resident)
{
    struct change change = change_at(prediction, share, resident, at, true);
    for (int i = 0; i < resident->gpus && resident->gpus > 1; i++) {
        int place = resident->places[i];
        struct change there = change_at(
            prediction, share, resident, place, is_among(place, gpus, n));
        change.before = fmin(change.before, there.before);
        change.after = fmin(change.after, there.after);
    }
    return change;
}

static bool is_counted(
    const struct cluster_view *view, const struct resident *resident, const int *gpus, int n)
{
    for (int i = 0; i < n && resident->gpus > 1; i++)
        if (gpu_view_resident(&view->gpus[gpus[i]], resident->task))
            return true;
    return false;
}

struct outlook predict_joining(struct prediction *prediction, const int *gpus, int n)
{
    const struct cluster_view *view = prediction->view;
    struct outlook outlook = {.known = prediction->query->task->request.expect.smact.valid};
    struct sharing_mode share = share_of(prediction, gpus, n);
    double own = INFINITY;
    for (int i = 0; i < n; i++) {
        const struct gpu_view *gpu = &view->gpus[gpus[i]];
        if (gpu->n_residents > PREDICT_RESIDENTS_MAX)
            return (struct outlook){.known = false};
        own = fmin(own, mix_at(prediction, gpus[i], &share)->after[gpu->n_residents]);
        for (int k = 0; k < gpu->n_residents; k++) {
            const struct resident *resident = &gpu->residents[k];
            outlook.known &= resident->expect.smact.valid;
            if (is_counted(view, resident, gpus, i))
                continue;
            struct change change = change_of(prediction, &share, gpus, n, gpus[i], resident);
            outlook.gain -= (change.before - change.after) * resident->gpus;
            outlook.slowdown = fmax(outlook.slowdown, 1 / change.after);
        }
    }
    outlook.gain = (outlook.gain + own * n) / n;
    outlook.slowdown = fmax(outlook.slowdown, 1 / own);
    return outlook;
}

struct outlook predict_joining_one(const struct placement_query *query, int gpu)
{
    struct prediction prediction;
    predict_start(&prediction, query, query->view);
    return predict_joining(&prediction, &gpu, 1);
}

bool predict_slows(struct prediction *prediction, int gpu, const struct resident *resident)
{
    const struct gpu_view *there = &prediction->view->gpus[gpu];
    bool known = prediction->query->task->request.expect.smact.valid &&
                 there->n_residents <= PREDICT_RESIDENTS_MAX;
    for (int i = 0; i < there->n_residents; i++)
        known &= there->residents[i].expect.smact.valid;
    struct sharing_mode share = share_of(prediction, &gpu, 1);
    struct change change = change_of(prediction, &share, &gpu, 1, gpu, resident);
    return !known || change.after < change.before - ROUNDING;
}
