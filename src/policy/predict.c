/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gain and slowdown of a placement.
 *
 * The progress of all tasks, in GPUs, is the sum over tasks of speed x number of GPUs. A task that
 * joins a GPU adds its own progress and reduces that of the residents. Where sharing lets the GPU
 * do more than one task can use, the sum grows; the gain is the growth for each GPU joined.
 *
 * An example: a resident runs alone at speed 1. A task joins; the resident then runs at 0.8 and the
 * task at 0.7. The sum goes from 1 to 1.5: the gain is 0.5 GPUs. The slowdown is that of the slower
 * one, 1 / 0.7 = 1.43. On an idle GPU the gain would be 1.
 *
 * Two memos make this fast. A predictor remembers GPUs for one question of one task; below it,
 * sharing/interference_cache.h remembers mixes of tasks between questions. The first saves the
 * second's look-ups: choosing a pair among 64 GPUs asks for 4,000 pairs of them.
 */
#include "policy/predict.h"

#include <math.h>
#include <stddef.h>

#include "core/kind_speed.h"
#include "core/sharing_choice.h"
#include "sharing/interference_cache.h"

/* Speeds that are computed again in another order differ by less. Chosen: far below any slowdown
 * that matters. */
#define ROUNDING 1e-6

static void solve_speeds(const struct interference_constants *constants, struct sharer *sharers,
    int n, double *ret_speeds)
{
    interference_speeds_cached(
        constants ? constants : &interference_measured, sharers, n, ret_speeds);
}

void predict_gpu_speeds(
    const struct interference_constants *constants, const struct gpu_view *gpu, double *ret_speeds)
{
    struct sharer sharers[PREDICT_RESIDENTS_MAX + 1];
    gpu_sharers_list(gpu, sharers);
    solve_speeds(constants, sharers, gpu->n_residents, ret_speeds);
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
        predict_gpu_speeds(view->constants, there, speeds);
        speed = fmin(speed, speeds[here - there->residents]);
    }
    return speed;
}

void predictor_init(struct predictor *predictor, const struct placement_query *query,
    const struct cluster_view *view)
{
    predictor->query = query;
    predictor->view = view;
    predictor->joined = -1;
    for (int i = 0; i < PREDICTOR_SLOTS; i++)
        predictor->gpu_of_slot[i] = -1;
}

/* How the task would share these GPUs: the core chooses it the same way when it places the task. */
static struct sharing_mode sharing_on(const struct predictor *predictor, const int *gpus, int n)
{
    const struct placement_query *query = predictor->query;
    const struct task_request *request = &query->task->request;
    bool is_as_asked = request->sharing != SHARING_AUTO && !predictor->view->has_promises;
    if (!is_as_asked && query->settings)
        return sharing_choose(query->settings, predictor->view, query->task, gpus, n, false);
    return (struct sharing_mode){
        .sharing = request->sharing, .thread_percent = request->thread_percent};
}

/* The speeds on a GPU with at most PREDICT_RESIDENTS_MAX residents. Valid until the next call for
 * another GPU, which may have the same slot. */
static const struct gpu_speeds *speeds_at(
    struct predictor *predictor, int gpu, const struct sharing_mode *share)
{
    int slot = gpu % PREDICTOR_SLOTS;
    const struct gpu_view *there = &predictor->view->gpus[gpu];
    const struct interference_constants *constants = predictor->view->constants;
    struct gpu_speeds *speeds = &predictor->slots[slot];
    bool is_known = predictor->gpu_of_slot[slot] == gpu;
    if (is_known && speeds->share.sharing == share->sharing &&
        speeds->share.thread_percent == share->thread_percent)
        return speeds;
    const struct expectation *expect = &predictor->query->task->request.expect;
    struct sharer sharers[PREDICT_RESIDENTS_MAX + 1];
    gpu_sharers_list(there, sharers);
    if (!is_known)
        solve_speeds(constants, sharers, there->n_residents, speeds->before);
    gpu_sharer_set(&sharers[there->n_residents], expect, share->sharing, share->thread_percent);
    solve_speeds(constants, sharers, there->n_residents + 1, speeds->after);
    speeds->share = *share;
    predictor->gpu_of_slot[slot] = gpu;
    return speeds;
}

static bool is_among(int gpu, const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        if (gpus[i] == gpu)
            return true;
    return false;
}

/* Speeds of one resident without and with the task. */
struct change {
    double before, after;
};

static struct change change_at(struct predictor *predictor, const struct sharing_mode *share,
    const struct resident *resident, int gpu, bool joined)
{
    const struct gpu_view *there = &predictor->view->gpus[gpu];
    const struct resident *here = gpu_view_resident(there, resident->task);
    if (!here || there->n_residents > PREDICT_RESIDENTS_MAX)
        return (struct change){INFINITY, INFINITY};
    const struct gpu_speeds *speeds = speeds_at(predictor, gpu, share);
    double before = speeds->before[here - there->residents],
           after = speeds->after[here - there->residents];
    return (struct change){before, joined ? after : before};
}

/* The change for a resident of the GPU `at`, one of the gpus[] that the task joins: on the slowest
 * of all GPUs that the resident is on. */
static struct change change_of(struct predictor *predictor, const struct sharing_mode *share,
    const int *gpus, int n, int at, const struct resident *resident)
{
    struct change change = change_at(predictor, share, resident, at, true);
    for (int i = 0; i < resident->gpus && resident->gpus > 1; i++) {
        int place = resident->places[i];
        if (place == at)
            continue; /* read above */
        struct change there = change_at(
            predictor, share, resident, place, is_among(place, gpus, n));
        change.before = fmin(change.before, there.before);
        change.after = fmin(change.after, there.after);
    }
    return change;
}

/* Tests whether the resident is also on one of the first `n` of these GPUs, where it was counted
 * already. */
static bool is_counted(
    const struct cluster_view *view, const struct resident *resident, const int *gpus, int n)
{
    for (int i = 0; i < n && resident->gpus > 1; i++)
        if (gpu_view_resident(&view->gpus[gpus[i]], resident->task))
            return true;
    return false;
}

/* The speed of the slowest GPU of a resident of `gpu`, relative to the fastest of the view. */
static double slowest_kind_of(
    const struct cluster_view *view, int gpu, const struct resident *resident)
{
    double slowest = kind_speed_of(view, gpu);
    for (int i = 0; i < resident->gpus && resident->gpus > 1; i++)
        slowest = fmin(slowest, kind_speed_of(view, resident->places[i]));
    return slowest;
}

/* Next to nothing: decides only between sets of GPUs with which the tasks progress equally. */
#define IDLE_SPEED_COST 1e-6

/* The progress of a task of `own` on n GPUs, less a little for the speed of the faster ones, which
 * it cannot use. */
static double own_progress(const struct cluster_view *view, const int *gpus, int n, double own)
{
    double slowest = 1, unused = 0;
    for (int i = 0; i < n; i++)
        slowest = fmin(slowest, kind_speed_of(view, gpus[i]));
    for (int i = 0; i < n; i++)
        unused += kind_speed_of(view, gpus[i]) - slowest;
    return own * n - IDLE_SPEED_COST * unused;
}

static struct prediction predict_effect(struct predictor *predictor, const int *gpus, int n)
{
    const struct cluster_view *view = predictor->view;
    struct sharing_mode share = sharing_on(predictor, gpus, n);
    struct prediction prediction = {
        .known = predictor->query->task->request.expect.smact.valid, .sharing = share.sharing};
    double own = INFINITY, own_of_fastest = INFINITY;
    for (int i = 0; i < n; i++) {
        const struct gpu_view *gpu = &view->gpus[gpus[i]];
        if (gpu->n_residents > PREDICT_RESIDENTS_MAX)
            return (struct prediction){.known = false};
        double here = speeds_at(predictor, gpus[i], &share)->after[gpu->n_residents];
        own = fmin(own, here);
        own_of_fastest = fmin(own_of_fastest, here * kind_speed_of(view, gpus[i]));
        for (int k = 0; k < gpu->n_residents; k++) {
            const struct resident *resident = &gpu->residents[k];
            prediction.known &= resident->expect.smact.valid;
            if (resident->is_stopped || is_counted(view, resident, gpus, i))
                continue;
            struct change change = change_of(predictor, &share, gpus, n, gpus[i], resident);
            double lost = (change.before - change.after) * resident->gpus;
            prediction.gain -= lost;
            prediction.progress -= lost * slowest_kind_of(view, gpus[i], resident);
            prediction.slowdown = fmax(prediction.slowdown, 1 / change.after);
        }
    }
    prediction.gain = (prediction.gain + own * n) / n;
    prediction.progress += own_progress(view, gpus, n, own_of_fastest);
    prediction.progress /= n;
    prediction.slowdown = fmax(prediction.slowdown, 1 / own);
    return prediction;
}

struct prediction predictor_join(struct predictor *predictor, const int *gpus, int n)
{
    if (n > 1)
        return predict_effect(predictor, gpus, n);
    if (predictor->joined != gpus[0])
        predictor->effect = predict_effect(predictor, gpus, 1);
    predictor->joined = gpus[0];
    return predictor->effect;
}

struct prediction predict_join_one(const struct placement_query *query, int gpu)
{
    struct predictor predictor;
    predictor_init(&predictor, query, query->view);
    return predictor_join(&predictor, &gpu, 1);
}

bool predictor_slows_resident(struct predictor *predictor, int gpu, const struct resident *resident)
{
    const struct gpu_view *there = &predictor->view->gpus[gpu];
    bool known = predictor->query->task->request.expect.smact.valid &&
                 there->n_residents <= PREDICT_RESIDENTS_MAX;
    for (int i = 0; i < there->n_residents; i++)
        known &= there->residents[i].expect.smact.valid;
    struct sharing_mode share = sharing_on(predictor, &gpu, 1);
    struct change change = change_of(predictor, &share, &gpu, 1, gpu, resident);
    return !known || change.after < change.before - ROUNDING;
}

double predict_slowdown_beside(const struct placement_query *query, int gpu,
    const struct resident *resident, double *ret_slower)
{
    struct predictor predictor;
    predictor_init(&predictor, query, query->view);
    struct sharing_mode share = sharing_on(&predictor, &gpu, 1);
    struct change change = change_of(&predictor, &share, &gpu, 1, gpu, resident);
    struct sharer own;
    gpu_sharer_set(&own, &resident->expect, resident->sharing, resident->thread_percent);
    *ret_slower = isinf(change.after) ? INFINITY : change.before / change.after;
    return isinf(change.after) ? INFINITY
                               : gpu_sharer_slowdown(query->view->constants, &own, change.after);
}

double predict_own_slowdown(const struct placement_query *query, int gpu)
{
    struct predictor predictor;
    int n = query->view->gpus[gpu].n_residents;
    if (n > PREDICT_RESIDENTS_MAX)
        return INFINITY;
    predictor_init(&predictor, query, query->view);
    struct sharing_mode share = sharing_on(&predictor, &gpu, 1);
    const struct task_request *request = &query->task->request;
    struct sharer own;
    gpu_sharer_set(&own, &request->expect, share.sharing, request->thread_percent);
    return gpu_sharer_slowdown(
        query->view->constants, &own, speeds_at(&predictor, gpu, &share)->after[n]);
}

double predict_slowdown_of(
    const struct placement_query *query, int gpu, const struct resident *resident)
{
    double slower;
    predict_slowdown_beside(query, gpu, resident, &slower);
    return slower;
}
