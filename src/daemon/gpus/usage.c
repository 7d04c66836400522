/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides each GPU's activity and energy among the tasks on it (gpu/attribution.h has the rules)
 * and sums them up per task. All shares, and what no task had, add up to the GPU's own figures.
 *
 * A sample describes the interval since the sample before, and tasks begin and end within such
 * intervals. The sums count the task's own time there:
 *
 *     sample        sample        sample        sample
 *       |-------------|-------------|-------------|
 *              start ^-----------------------^ end
 *               first    whole interval    last
 *
 * - First: the time since its start. The GPU's mean is of the whole interval, so a task alone on a
 *   GPU that was idle before did all of its work in that time.
 * - Last: the task ends before the sample is taken. Its share of the sample before is used up to
 *   its end. Where a sample is taken between the end of its processes and its own, it has the
 *   weight that it had before.
 *
 * Compute instances that share a GPU instance are measured together: its activity is divided among
 * the processes on all of them, as far as one can tell. The shares on all of them add up to it.
 */
#include <math.h>

#include "base/clock.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_state.h"

enum { SHARES_MAX = 256 }; /* chosen: as RESIDENTS_SAMPLED_MAX */

static const struct share *share_before(const struct gpu_state *state, uint64_t task)
{
    for (size_t i = 0; i < state->n_shares_before; i++)
        if (state->shares_before[i].task == task)
            return &state->shares_before[i];
    return NULL;
}

static bool has_processes(const struct share *shares, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (shares[i].holder.processes > 0)
            return true;
    return false;
}

/* All processes ended in this interval: the work was theirs. */
static void take_weights_before(struct gpu_state *state)
{
    for (size_t i = 0; i < state->n_shares; i++) {
        const struct share *before = share_before(state, state->shares[i].task);
        state->shares[i].holder.weight = before && before->holder.processes > 0
                                             ? before->holder.weight
                                             : 0;
    }
}

/* Returns whether the weights are estimated. */
static bool weigh_shares(struct gpu_state *state)
{
    struct gpu_holder holders[SHARES_MAX];
    size_t n = state->n_shares < SHARES_MAX ? state->n_shares : SHARES_MAX;
    if (!has_processes(state->shares, state->n_shares)) {
        take_weights_before(state);
        return state->shares_estimated;
    }
    for (size_t i = 0; i < n; i++)
        holders[i] = state->shares[i].holder;
    bool is_estimated = attribution_weigh(holders, n) || (n > 0 && !state->sample.processes.valid);
    for (size_t i = 0; i < n; i++)
        state->shares[i].holder.weight = holders[i].weight;
    return is_estimated;
}

/* ---- compute instances that share a GPU instance ---- */

/* Appends those that have worked on the GPU in this interval. */
static void add_holders(
    const struct gpu_state *state, size_t *n_holders, struct gpu_holder holders[SHARES_MAX])
{
    bool is_now = has_processes(state->shares, state->n_shares);
    const struct share *shares = is_now ? state->shares : state->shares_before;
    size_t n = is_now ? state->n_shares : state->n_shares_before;
    for (size_t i = 0; i < n && *n_holders < SHARES_MAX; i++)
        holders[(*n_holders)++] = shares[i].holder;
}

/* What is measured of a compute instance is that of its GPU instance: the part of it that its own
 * processes did. Where none are known, its part of the slices. Returns whether it is estimated. */
static bool weigh_place(const struct gpus *gpus, size_t i, double *ret_part)
{
    const struct gpu_info *info = &gpus->set->gpu[i];
    struct gpu_holder holders[SHARES_MAX];
    size_t n = 0, n_own;
    add_holders(&gpus->states[i], &n, holders);
    n_own = n;
    for (size_t k = 0; k < gpus->set->count; k++)
        if (k != i && gpu_info_shares_memory(&gpus->set->gpu[k], info))
            add_holders(&gpus->states[k], &n, holders);
    bool is_estimated = attribution_weigh(holders, n);
    double own = 0, all = 0;
    for (size_t k = 0; k < n; k++) {
        own += k < n_own ? holders[k].weight : 0;
        all += holders[k].weight;
    }
    bool has_slices = info->compute_slices.valid && info->gpu_slices.value > 0;
    double by_slices = has_slices ? info->compute_slices.value / info->gpu_slices.value : 1;
    *ret_part = all > 0 ? own / all : by_slices;
    return is_estimated && own > 0;
}

void usage_weigh(struct gpus *gpus, size_t i)
{
    struct gpu_state *state = &gpus->states[i];
    bool is_estimated = weigh_shares(state);
    state->shares_estimated = weigh_place(gpus, i, &state->activity_part) || is_estimated;
}

/* ---- energy ---- */

static struct reading part_of(struct reading whole, double part)
{
    return whole.valid ? reading_of(whole.value * part) : READING_NONE;
}

/* How many slices of its card an instance keeps busy. */
static struct reading busy_slices(const struct gpus *gpus, size_t i)
{
    const struct gpu_state *state = &gpus->states[i];
    return part_of(
        gpus->set->gpu[i].gpu_slices, reading_or(state->sample.smact, 0) * state->activity_part);
}

static struct reading busy_slices_of_card(const struct gpus *gpus, size_t card)
{
    struct reading busy = reading_of(0);
    for (size_t i = 0; i < gpus->set->count; i++) {
        struct reading own = busy_slices(gpus, i);
        if (!gpus->set->gpu[i].is_mig || gpus->set->gpu[i].parent != card)
            continue;
        busy = busy.valid && own.valid ? reading_of(busy.value + own.value) : READING_NONE;
    }
    return busy;
}

/*
 * A MIG instance has no power meter. If the driver does not report the slices of its card and of
 * the card's instances, its energy is unknown. Of its card's idle power it gets the part of its
 * slices; of the power beyond that, the part that its busy slices are of all busy ones.
 */
static struct drawn drawn_by_instance(const struct gpus *gpus, size_t i)
{
    const struct gpu_info *info = &gpus->set->gpu[i];
    struct reading slices = gpus->set->gpu[info->parent].card_slices;
    struct drawn drawn = gpus->states[info->parent].drawn;
    struct reading all_busy = busy_slices_of_card(gpus, info->parent);
    if (!info->compute_slices.valid || !slices.valid || !all_busy.valid)
        return (struct drawn){0};
    double idle = drawn.idle_part * info->compute_slices.value / slices.value, work = 0;
    if (all_busy.value > 0)
        work = (1 - drawn.idle_part) * busy_slices(gpus, i).value / all_busy.value;
    drawn.energy_j.value *= idle + work;
    drawn.power_w.value *= idle + work;
    drawn.idle_part = idle + work > 0 ? idle / (idle + work) : 0;
    return drawn;
}

void usage_measure(struct gpus *gpus, size_t i)
{
    struct gpu_state *state = &gpus->states[i];
    gpu_meter_take(&state->meter, &state->sample);
    state->drawn = (struct drawn){
        state->meter.drawn_j, state->sample.power_w, state->meter.idle_part};
    if (gpus->set->gpu[i].is_mig && !state->sample.power_w.valid)
        state->drawn = drawn_by_instance(gpus, i);
}

static void add_activity(struct usage *usage, double smact, double work_s, double own_s)
{
    usage->smact_s += smact * work_s;
    usage->span_s += own_s;
}

static void add_energy(struct usage *usage, double energy_j)
{
    usage->energy_j = reading_of(reading_or(usage->energy_j, 0) + energy_j);
}

/* How long the task has been running at the time of a sample; its start is known by the wall
 * clock. */
static double running_s(struct gpus *gpus, uint64_t task, int64_t at_us)
{
    int64_t age_us = clock_monotonic_us() - at_us;
    int64_t started_us = core_task(gpus->parts.core, task)->started_us;
    return fmax(
        0, (double)(driver_now_us(gpus->parts.driver) - age_us - started_us) / (double)SECOND_US);
}

/* No other task was on the GPU, now or at the sample before. */
static bool was_alone(const struct gpu_state *state, uint64_t task)
{
    return state->n_shares == 1 &&
           (state->n_shares_before == 0 ||
               (state->n_shares_before == 1 && state->shares_before[0].task == task));
}

static void add_interval(struct gpus *gpus, struct usage *usage, const struct gpu_state *state,
    const struct share *share, double energy_part)
{
    double span_s = state->meter.activity_span_s;
    double own_s = fmin(span_s, running_s(gpus, share->task, state->meter.activity_at_us));
    double work_s = was_alone(state, share->task) ? span_s : own_s;
    if (share->smact.valid)
        add_activity(usage, share->smact.value, work_s, own_s);
    if (state->drawn.energy_j.valid)
        add_energy(usage, state->drawn.energy_j.value * energy_part);
    usage->is_estimated |= state->shares_estimated;
}

void usage_divide(struct gpus *gpus, struct gpu_state *state)
{
    for (size_t i = 0; i < state->n_shares; i++) {
        struct share *share = &state->shares[i];
        double energy_part = attribution_energy_share(
            share->holder.weight, state->n_shares, state->drawn.idle_part);
        share->smact = part_of(state->sample.smact, state->activity_part * share->holder.weight);
        share->power_w = part_of(state->drawn.power_w, energy_part);
        struct job *job = share->task ? jobs_find(gpus->parts.jobs, share->task) : NULL;
        if (job)
            add_interval(gpus, &job->usage, state, share, energy_part);
    }
}

/* Chosen: after a longer time without samples the GPU's activity may have changed. */
enum { PERIODS_MAX = 3 };

static void add_rest(
    struct gpus *gpus, struct job *job, const struct gpu_state *state, const struct share *share)
{
    int64_t now_us = clock_monotonic_us();
    int64_t rest_us = now_us - state->meter.at_us;
    bool goes_on = share->holder.processes > 0 && rest_us >= 0 &&
                   rest_us <= PERIODS_MAX * gpus->parts.config->sample_period_us;
    if (!goes_on)
        return;
    /* Activity may have been measured before the last sample, but must be of this task's time. */
    if (share->smact.valid && running_s(gpus, job->id, state->meter.activity_at_us) > 0) {
        double s = (double)(now_us - state->meter.activity_at_us) / (double)SECOND_US;
        add_activity(&job->usage, share->smact.value, s, s);
    }
    if (share->power_w.valid)
        add_energy(&job->usage, share->power_w.value * (double)rest_us / (double)SECOND_US);
}

void gpus_end_usage(struct gpus *gpus, struct job *job)
{
    for (size_t i = 0; gpus->set && i < gpus->set->count; i++) {
        const struct gpu_state *state = &gpus->states[i];
        for (size_t k = 0; state->view >= 0 && k < state->n_shares; k++)
            if (state->shares[k].task == job->id)
                add_rest(gpus, job, state, &state->shares[k]);
    }
}
