/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The estimator history: the peaks of earlier runs of the same network on the same kind of GPU.
 *
 *   - Runs at the same batch: the highest peak.
 *   - A run at the same batch with another optimizer: its peak, and the difference of the two
 *     physical estimates. Most of the error is in the forward and backward pass, where both are
 *     the same.
 *   - Runs with the same optimizer and precision at two batches or more: the line through the two
 *     nearest ones.
 *   - Otherwise runs at other batches, with other optimizers and precisions: the physical estimate,
 *     corrected by what they took more than it says of them (other_runs.h).
 *   - A run that ran out of memory is only a lower bound.
 *   - Peaks that fall while the batch grows come from runs with a memory limit: no answer.
 *   - Only the user's own runs count. Those of others are for the estimator graph, which has
 *     another estimate to compare them with.
 *
 * Example: runs at batches 32 and 64 took 6 and 8 GiB. The line gives 7 GiB for 48, and 12 GiB for
 * 128.
 */
#include <math.h>
#include <string.h>

#include "estimator/estimator_table.h"
#include "estimator/other_runs.h"
#include "estimator/physics/physics.h"
#include "estimator/physics/quantile.h"

enum { BATCHES_MAX = 64 }; /* chosen: different batches of one network; further ones are ignored */

/* A peak is falling if it is lower than that of a smaller batch by more than this fraction. Chosen:
 * equal trainings differ by up to 0.4 % in most cases (docs/measured/estimators.md). */
static const double falling_most = 0.02;

/* The facts about one batch, from all its completed runs. */
struct point {
    int64_t batch;
    double peak; /* bytes, the highest */
};

struct points {
    struct point at[BATCHES_MAX];
    int n;
    double at_least; /* bytes: from runs that ran out of memory at this batch or a smaller one */
    const struct past_run *other; /* at this batch with another optimizer, the newest; or NULL */
    struct other_runs others;     /* of all other configurations that physics knows */
};

static bool is_compatible(int wanted, int ran, int not_given)
{
    return wanted == not_given || ran == not_given || wanted == ran;
}

static bool is_same_kind(const char *wanted, const char *ran)
{
    return !wanted || !*ran || strcmp(wanted, ran) == 0;
}

/* A process of a training on several GPUs takes more, or less, than one of a training on one. */
static bool has_as_many_gpus(const struct past_run *run, const struct estimate_request *request)
{
    return run->gpus == 0 || run->gpus == (request->gpus > 1 ? request->gpus : 1);
}

static bool is_of(
    enum past_runs_of whose, const struct past_run *run, const struct estimate_request *request)
{
    return (run->uid == request->uid) == (whose == PAST_RUNS_OWN);
}

static bool matches_request(
    const struct past_run *run, uint64_t fingerprint, const struct estimate_request *request)
{
    return run->fingerprint == fingerprint && has_as_many_gpus(run, request) &&
           is_same_kind(request->gpu_kind, run->gpu_kind) &&
           (request->sequence_length == 0 || run->sequence_length == 0 ||
               request->sequence_length == run->sequence_length);
}

static void add_point(struct points *points, const struct past_run *run)
{
    int i = 0;
    while (i < points->n && points->at[i].batch < run->batch)
        i++;
    if (i < points->n && points->at[i].batch == run->batch) {
        if ((double)run->peak_bytes > points->at[i].peak)
            points->at[i].peak = (double)run->peak_bytes;
        return;
    }
    if (points->n == BATCHES_MAX)
        return;
    memmove(&points->at[i + 1], &points->at[i], (size_t)(points->n - i) * sizeof points->at[0]);
    points->at[i] = (struct point){.batch = run->batch, .peak = (double)run->peak_bytes};
    points->n++;
}

/* An export holds for its own optimizer and precision. What an optimizer takes of which only the
 * name is known cannot be taken away. */
static void add_other(
    const struct estimate_request *request, const struct past_run *run, struct points *points)
{
    bool same_precision = is_compatible(request->precision, run->precision, PRECISION_NOT_GIVEN);
    bool same_optimizer = is_compatible(request->optimizer, run->optimizer, OPTIMIZER_NOT_GIVEN);
    bool are_known = run->optimizer != OPTIMIZER_OTHER && request->optimizer != OPTIMIZER_OTHER;
    if (run->lower_bound || (!same_optimizer && !are_known))
        return;
    if (same_precision && !same_optimizer && run->batch == estimate_batch(request).value)
        points->other = run;
    if ((same_precision && same_optimizer) || !request->export)
        other_runs_add(request, run, &points->others);
}

static void gather_points(
    const struct estimate_request *request, enum past_runs_of whose, struct points *ret_points)
{
    uint64_t fingerprint = model_fingerprint(request->model);
    *ret_points = (struct points){0};
    for (size_t i = 0; i < request->n_history; i++) {
        const struct past_run *run = &request->history[i];
        if (!is_of(whose, run, request) || !matches_request(run, fingerprint, request))
            continue;
        add_other(request, run, ret_points);
        if (!is_compatible(request->optimizer, run->optimizer, OPTIMIZER_NOT_GIVEN) ||
            !is_compatible(request->precision, run->precision, PRECISION_NOT_GIVEN))
            continue;
        if (!run->lower_bound)
            add_point(ret_points, run);
        else if (run->batch <= estimate_batch(request).value &&
                 (double)run->peak_bytes > ret_points->at_least)
            ret_points->at_least = (double)run->peak_bytes;
    }
}

double history_at_least(const struct estimate_request *request, enum past_runs_of whose)
{
    struct points points;
    gather_points(request, whose, &points);
    return points.at_least;
}

static bool has_falling_peaks(const struct points *points)
{
    for (int i = 1; i < points->n; i++)
        if (points->at[i].peak < points->at[i - 1].peak * (1 - falling_most))
            return true;
    return false;
}

/* Returns the line through the two nearest batches, at `batch`. */
static double line_at(const struct points *points, int64_t batch)
{
    int high = 1;
    while (high < points->n - 1 && points->at[high].batch < batch)
        high++;
    const struct point *a = &points->at[high - 1], *b = &points->at[high];
    return a->peak +
           (b->peak - a->peak) * (double)(batch - a->batch) / (double)(b->batch - a->batch);
}

static const struct point *find_exact(const struct points *points, int64_t batch)
{
    for (int i = 0; i < points->n; i++)
        if (points->at[i].batch == batch)
            return &points->at[i];
    return NULL;
}

/* Estimates from the run with another optimizer: what it took, and the difference of the physical
 * estimates as they are, since their correction is learned for what cancels out here. Returns
 * whether that is possible. */
static bool change_optimizer(const struct estimate_request *request, const struct past_run *run,
    struct estimate *ret_estimate, struct physics *ret_physics, double *ret_bytes)
{
    struct estimate_request layers = *request;
    struct physics theirs;
    layers.export = NULL; /* it holds for its own optimizer */
    if (physics_of_run(&layers, run, &theirs) <= 0 ||
        physics_of_run(&layers, NULL, ret_physics) <= 0)
        return false;
    double least = ret_physics->context_bytes + ret_physics->footprint.live;
    double more = ret_physics->footprint.reserved - theirs.footprint.reserved;
    *ret_bytes = fmax((double)run->peak_bytes + more, least);
    ret_estimate->evidence = EVIDENCE_OTHER_OPTIMIZER;
    ret_estimate->floor_bytes = reading_of(least);
    return true;
}

static int predict_bytes(const struct estimate_request *request, struct points *points,
    struct estimate *ret_estimate, struct physics *ret_physics, double *ret_bytes)
{
    int64_t batch = estimate_batch(request).value;
    const struct point *same = find_exact(points, batch);
    if (same) {
        ret_estimate->evidence = EVIDENCE_SAME_RUN;
        *ret_bytes = same->peak;
        return 0;
    }
    if (points->other &&
        change_optimizer(request, points->other, ret_estimate, ret_physics, ret_bytes))
        return 0;
    double reserved = physics_of_run(request, NULL, ret_physics);
    int used = 0;
    double factor = reserved > 0 ? other_runs_factor(request, &points->others, &used) : 0;
    if (used == 0)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN,
            "earlier runs had other batches or settings, and the layers do not show what these "
            "change");
    double context = ret_physics->context_bytes;
    double floor_bytes = context + ret_physics->footprint.live;
    bool has_line = points->n > 1;
    double line = has_line ? line_at(points, batch) : 0;
    ret_estimate->evidence = has_line    ? EVIDENCE_RUNS
                             : used == 1 ? EVIDENCE_ONE_RUN
                                         : EVIDENCE_OTHER_RUNS;
    /* A steep line falls below the least memory that the task needs, even below 0. */
    *ret_bytes = has_line && line >= floor_bytes ? line
                                                 : fmax(context + factor * reserved, floor_bytes);
    ret_estimate->floor_bytes = reading_of(floor_bytes);
    return 0;
}

int history_estimate(
    const struct estimate_request *request, enum past_runs_of whose, struct estimate *ret_estimate)
{
    struct points points;
    struct physics physics = {0};
    double bytes = 0;
    if (!request->model)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN,
            "history needs a model summary to identify the network");
    if (!estimate_batch(request).known)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN, ESTIMATE_NO_BATCH);
    gather_points(request, whose, &points);
    if (points.n == 0 && !points.other && points.others.n == 0)
        return estimate_note(
            ret_estimate, ESTIMATE_UNKNOWN, "no earlier run of this network by this user is known");
    if (has_falling_peaks(&points))
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN,
            "earlier runs took less memory with larger batches, probably under a memory limit");
    int r = predict_bytes(request, &points, ret_estimate, &physics, &bytes);
    if (r != 0)
        return r;
    if (points.at_least > bytes) {
        estimate_note(ret_estimate, 0, "raised to what a run had when it ran out of memory");
        bytes = points.at_least;
    }
    ret_estimate->bytes = reading_of(bytes);
    quantiles_set(ret_estimate, &physics);
    return 0;
}

static int run(
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    return history_estimate(request, PAST_RUNS_OWN, ret_estimate);
}

const struct estimator estimator_history = {"history", "what the same network took before", run};
