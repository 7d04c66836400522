/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy predictive: place a task where all tasks together are predicted to gain most.
 *
 * Memory: a resident's requirement is its own from its placement on, whether it has taken the
 * memory yet or not (admission.c).
 *
 * Speed: the interference model predicts how fast every task on a GPU would be (predict.h). Of the
 * GPUs that pass the admission test, the task gets those on which the sum of all tasks' progress
 * grows most. It waits rather than slow a task down more than slowdown_max times, or gain next to
 * nothing. Unknown activity counts as the whole GPU, and the dissertation's limit on SM activity
 * replaces the prediction.
 *
 * An example. GPU 0 runs a task with 90 % SM activity, GPU 1 one with 30 %. A task with 40 % would
 * slow both tasks on GPU 0 down: little is gained. On GPU 1 the two use 70 % of the SMs and hardly
 * disturb each other: the task goes there. An idle GPU would have been taken at once, since there
 * it disturbs no task.
 *
 * Where kinds of GPUs differ in speed (core/kind_speed.h), progress is counted in GPUs of the
 * fastest kind: the fastest idle GPU is taken at once, and a slow idle one is compared with joining
 * the residents of a fast one.
 *
 * Backfill (backfill.h): GPUs are reserved for the head of the queue; tasks behind it may start
 * where that does not delay it.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/top_k.h"
#include "core/kind_speed.h"
#include "policy/admission.h"
#include "policy/backfill.h"
#include "policy/closest.h"
#include "policy/conditions.h"
#include "policy/load_limits.h"
#include "policy/lookahead.h"
#include "policy/policies.h"

/* Sums of the same numbers in another order differ by less. Chosen: far below any gain that
 * matters, far above rounding. */
#define ROUNDING 1e-9

static const struct verdict fits = {.kind = VERDICT_FITS};

/* The tests on the GPU itself and its residents. Sets the verdict. */
static bool check_residents(const struct placement_query *query, struct predictor *predictor, int i,
    struct verdict *ret_verdict)
{
    bool is_final;
    *ret_verdict = fits;
    return conditions_check_place(query, i, &is_final, ret_verdict) &&
           (is_final || admission_check(query, predictor, i, ret_verdict));
}

/* The others, which read more than the GPU. The reservation is tested last, since that test is the
 * most expensive. Sets the verdict only if the task does not fit. */
static bool check_others(const struct placement_query *query, struct predictor *predictor, int i,
    struct verdict *ret_verdict)
{
    if (!load_limits_admit(query, i, ret_verdict) || !conditions_check_node(query, i, ret_verdict))
        return false;
    uint64_t delayed = backfill_delayed_task(query, predictor, i);
    if (delayed)
        *ret_verdict = (struct verdict){.kind = VERDICT_RESERVED, .task = delayed};
    return !delayed;
}

/* Sets the verdict on the GPU. Returns whether the task fits. */
static bool check_gpu(const struct placement_query *query, struct predictor *predictor, int i,
    struct verdict *ret_verdict)
{
    return check_residents(query, predictor, i, ret_verdict) &&
           check_others(query, predictor, i, ret_verdict);
}

/* The speed of the fastest GPU that the task may have; 0 where speeds are not compared. */
static double fastest_kind(const struct placement_query *query)
{
    double fastest = 0;
    for (int i = query->first_gpu; i < placement_end_gpu(query) && query->view->speed_max; i++)
        if (query->view->gpus[i].is_listed && cluster_view_suits(query->view, i, query->task))
            fastest = fmax(fastest, kind_speed_of(query->view, i));
    return fastest;
}

/* Is the GPU idle, and as fast as `fastest`? */
static bool is_idle_and_fast(const struct placement_query *query, int i, double fastest)
{
    return cluster_view_may_be_idle(query->view, i) && kind_speed_of(query->view, i) >= fastest &&
           gpu_view_is_idle(&query->view->gpus[i]);
}

/* Lists the first idle GPUs of the fastest kind that fit, at most `most`. Sets the verdicts on all
 * such GPUs unless it finds as many. Returns how many. */
static int list_idle(const struct placement_query *query, struct predictor *predictor,
    double fastest, int most, int *ret_gpus, struct verdict *ret_verdicts)
{
    int n = 0, end = placement_end_gpu(query);
    for (int i = query->first_gpu; i < end && n < most; i++)
        if (is_idle_and_fast(query, i, fastest) && check_gpu(query, predictor, i, &ret_verdicts[i]))
            ret_gpus[n++] = i;
    return n;
}

/* No GPU has a larger gain than an idle one of the fastest kind: chooses the first idle ones, or
 * the closest ones, and tests no others. */
static bool pick_idle(const struct placement_query *query, struct predictor *predictor,
    double fastest, int *ret_gpus, struct verdict *ret_verdicts)
{
    int wanted = placement_wanted(query), idle[VIEW_DISTANCES_MAX];
    if (!closest_matters(query->view, wanted))
        return list_idle(query, predictor, fastest, wanted, ret_gpus, ret_verdicts) == wanted;
    int n = list_idle(query, predictor, fastest, VIEW_DISTANCES_MAX, idle, ret_verdicts);
    if (n < wanted)
        return false;
    closest_complete(query->view, ret_gpus, 0, wanted, idle, n);
    return true;
}

static double predicted_progress(struct predictor *predictor, const int *gpus, int n)
{
    return predictor_join(predictor, gpus, n).progress;
}

/* Adds to the `n` chosen GPUs the one with which all chosen gain most. Of equal ones the first. */
static bool add_best(
    struct predictor *predictor, const struct verdict *verdicts, int *chosen, int n)
{
    const struct placement_query *query = predictor->query;
    double best_gain = -INFINITY;
    int best = -1;
    for (int i = query->first_gpu; i < placement_end_gpu(query); i++) {
        bool is_open = verdicts[i].kind == VERDICT_FITS;
        for (int k = 0; k < n; k++)
            is_open &= chosen[k] != i;
        chosen[n] = i;
        double gain = is_open ? predicted_progress(predictor, chosen, n + 1) : -INFINITY;
        if (is_open && gain > best_gain + ROUNDING) {
            best_gain = gain;
            best = i;
        }
    }
    chosen[n] = best;
    return best >= 0;
}

static bool complete_choice(
    struct predictor *predictor, const struct verdict *verdicts, int *chosen, int n)
{
    for (; n < placement_wanted(predictor->query); n++)
        if (!add_best(predictor, verdicts, chosen, n))
            return false;
    return true;
}

/* Is a set tried that begins with the GPU? Every pair is; of larger sets one for each kind. */
static bool may_begin_set(
    const struct placement_query *query, const struct verdict *verdicts, int gpu)
{
    const struct cluster_view *view = query->view;
    bool is_first = view->speed_max > 0;
    for (int i = query->first_gpu; i < gpu && is_first; i++)
        is_first = verdicts[i].kind != VERDICT_FITS ||
                   kind_speed_of(view, i) != kind_speed_of(view, gpu);
    return verdicts[gpu].kind == VERDICT_FITS && (placement_wanted(query) == 2 || is_first);
}

/*
 * Picks nearly the best set of GPUs: greedily, and for two GPUs every pair. A pair can gain more
 * than its GPUs one by one: a resident task that is on both is slowed down only once. Where kinds
 * differ, a set is begun with a GPU of each: one fast GPU beside slow ones gains nothing.
 */
static bool pick_of_few(struct predictor *predictor, const struct verdict *verdicts, int *ret_gpus)
{
    double best_gain;
    const struct placement_query *query = predictor->query;
    int wanted = placement_wanted(query);
    if (!complete_choice(predictor, verdicts, ret_gpus, 0))
        return false;
    best_gain = predicted_progress(predictor, ret_gpus, wanted);
    for (int i = query->first_gpu; i < placement_end_gpu(query) && wanted > 1; i++) {
        int set[PREDICTOR_SLOTS] = {i};
        if (!may_begin_set(query, verdicts, i) || !complete_choice(predictor, verdicts, set, 1))
            continue;
        double gain = predicted_progress(predictor, set, wanted);
        if (gain <= best_gain + ROUNDING)
            continue;
        best_gain = gain;
        memcpy(ret_gpus, set, (size_t)wanted * sizeof *set);
    }
    return true;
}

/*
 * For a task of one GPU. The tests that read more than the GPU are the dearest: they are left out
 * where the gain is no larger than that of a GPU found before, whatever they would say. Sets all
 * verdicts that pick_idle, which found no GPU, has not set, unless it finds one.
 */
static bool pick_single(
    struct predictor *predictor, double fastest, int *ret_gpu, struct verdict *ret_verdicts)
{
    const struct placement_query *query = predictor->query;
    const struct conditions_filter filter = conditions_filter_of(query);
    double best_gain = -INFINITY;
    bool is_found = false;
    for (int i = query->first_gpu; i < placement_end_gpu(query); i++) {
        if (conditions_filter_refuses(&filter, i, &ret_verdicts[i]) ||
            is_idle_and_fast(query, i, fastest) ||
            !check_residents(query, predictor, i, &ret_verdicts[i]))
            continue;
        double gain = predicted_progress(predictor, &i, 1);
        if ((is_found && !(gain > best_gain + ROUNDING)) ||
            !check_others(query, predictor, i, &ret_verdicts[i]))
            continue;
        is_found = true;
        best_gain = gain;
        *ret_gpu = i;
    }
    return is_found;
}

static bool gains_more(const void *a, const void *b, const void *context)
{
    const struct verdict *verdicts = context;
    return verdicts[*(const int *)a].have > verdicts[*(const int *)b].have + ROUNDING;
}

/* With many GPUs picks those that gain most one by one. */
static bool pick_of_many(
    const struct placement_query *query, const struct verdict *verdicts, int *ret_gpus)
{
    size_t n = 0, wanted = (size_t)placement_wanted(query);
    for (int i = query->first_gpu; i < placement_end_gpu(query); i++)
        if (verdicts[i].kind == VERDICT_FITS)
            n = top_k_insert(ret_gpus, n, wanted, sizeof *ret_gpus, &i, gains_more, verdicts);
    return n == wanted;
}

/* Sets the verdicts that pick_idle, which found too few, has not set; in VERDICT_FITS `have` is the
 * progress gained on that GPU alone. */
static void check_all_gpus(const struct placement_query *query, struct predictor *predictor,
    double fastest, struct verdict *verdicts)
{
    const struct conditions_filter filter = conditions_filter_of(query);
    for (int i = query->first_gpu; i < placement_end_gpu(query); i++) {
        if (conditions_filter_refuses(&filter, i, &verdicts[i]))
            continue;
        if (!is_idle_and_fast(query, i, fastest))
            check_gpu(query, predictor, i, &verdicts[i]);
        if (verdicts[i].kind == VERDICT_FITS)
            verdicts[i].have = predicted_progress(predictor, &i, 1);
    }
}

static bool pick_gpus(const struct placement_query *query, struct predictor *predictor,
    const struct verdict *verdicts, int *ret_gpus)
{
    if (query->view->n_gpus > PREDICTOR_SLOTS)
        return pick_of_many(query, verdicts, ret_gpus);
    return placement_wanted(query) <= placement_end_gpu(query) - query->first_gpu &&
           pick_of_few(predictor, verdicts, ret_gpus);
}

/* Idle GPUs of one kind are equally good. */
static bool is_alike(const struct cluster_view *view, int a, int idle)
{
    return gpu_view_is_idle(&view->gpus[a]) && kind_speed_of(view, a) == kind_speed_of(view, idle);
}

/* Replaces the idle GPUs of the choice by the closest of those that are equally good. If they are
 * of several kinds, those of the last one's kind are replaced. */
static void bring_closer(
    const struct placement_query *query, const struct verdict *verdicts, int *gpus)
{
    const struct cluster_view *view = query->view;
    int kept[VIEW_DISTANCES_MAX], alike[VIEW_DISTANCES_MAX];
    int n_kept = 0, n_alike = 0, idle = -1, wanted = placement_wanted(query);
    for (int i = 0; i < wanted; i++)
        if (gpu_view_is_idle(&view->gpus[gpus[i]]))
            idle = gpus[i];
    if (idle < 0 || !closest_matters(view, wanted))
        return;
    for (int i = 0; i < wanted; i++)
        if (!is_alike(view, gpus[i], idle))
            kept[n_kept++] = gpus[i];
    for (int i = query->first_gpu; i < placement_end_gpu(query); i++)
        if (verdicts[i].kind == VERDICT_FITS && is_alike(view, i, idle))
            alike[n_alike++] = i;
    memcpy(gpus, kept, (size_t)n_kept * sizeof *kept);
    closest_complete(view, gpus, n_kept, wanted, alike, n_alike);
}

static enum placement_answer choose(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    struct predictor predictor;
    int wanted = placement_wanted(query);
    double fastest = fastest_kind(query);
    predictor_init(&predictor, query, query->view);
    if (pick_idle(query, &predictor, fastest, ret_gpus, ret_verdicts))
        return PLACE_NOW;
    if (wanted == 1)
        return pick_single(&predictor, fastest, ret_gpus, ret_verdicts) ? PLACE_NOW : PLACE_WAIT;
    check_all_gpus(query, &predictor, fastest, ret_verdicts);
    if (!pick_gpus(query, &predictor, ret_verdicts, ret_gpus))
        return PLACE_WAIT;
    bring_closer(query, ret_verdicts, ret_gpus);
    struct prediction effect = predictor_join(&predictor, ret_gpus, wanted);
    bool is_tested = effect.known && wanted > 1;
    struct verdict together;
    if (!is_tested || admission_check_effect(query, &effect, &together))
        return PLACE_NOW;
    for (int i = 0; i < wanted; i++)
        ret_verdicts[ret_gpus[i]] = together;
    return PLACE_WAIT;
}

/* The rank of a task of unknown time: after all others. Sums of such ranks do not overflow. */
#define RANK_UNKNOWN (INT64_MAX / 4)

/* Chosen: a task that has overrun its expected time still takes a tenth of it. */
#define OVERRUN_DIVISOR 10

/* The rank: the time that the task still has to run, on the kind of GPU that its expected time
 * holds for. Beside co-residents it takes longer than alone. */
static int64_t rank(const struct task *task, int64_t now_us)
{
    const struct reading *time_us = &task->request.expect.time_us;
    if (!time_us->valid)
        return RANK_UNKNOWN;
    int64_t expected_us = (int64_t)time_us->value;
    double speed = task->run->kind_speed > 0 ? task->run->kind_speed : 1;
    int64_t left_us = expected_us - (int64_t)(speed * (double)task_computed_us(task, now_us));
    return left_us > expected_us / OVERRUN_DIVISOR ? left_us : expected_us / OVERRUN_DIVISOR;
}

const struct policy policy_predictive = {
    .name = "predictive",
    .former_name = "foresee", /* check-words: alias */
    .help = "where all tasks together are predicted to gain most; short tasks are backfilled",
    .limits_slowdown = true,
    .longest_first = true,
    .choose = choose,
    .rank = rank,
    .rank_text = "it has least time left, or must start soon not to end late",
    .plan = lookahead_plan,
    .reserve = backfill_reserve,
};
