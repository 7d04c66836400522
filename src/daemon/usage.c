/*
 * What of a GPU's activity and energy is whose (gpu/share.h has the rules), and each task's sums.
 * All shares and what nobody had add up to the GPU's own figures.
 */
#include "daemon/daemon.h"

enum { SHARES_MAX = 256 };

static void weigh(struct gpu_state *state)
{
    struct gpu_holder holders[SHARES_MAX];
    size_t n = state->n_shares < SHARES_MAX ? state->n_shares : SHARES_MAX;
    for (size_t i = 0; i < n; i++)
        holders[i] = state->shares[i].holder;
    state->shares_estimated = share_weigh(holders, n) || (n > 0 && !state->sample.processes.valid);
    for (size_t i = 0; i < n; i++)
        state->shares[i].holder.weight = holders[i].weight;
}

/* How much of its card an instance keeps busy, in slices. */
static double busy_slices(const struct daemon *daemon, size_t i)
{
    return reading_or(daemon->gpu_states[i].sample.smact, 0) * daemon->gpus->gpu[i].compute_slices;
}

static double busy_slices_of_card(const struct daemon *daemon, size_t card)
{
    double busy = 0;
    for (size_t i = 0; i < daemon->gpus->count; i++)
        if (daemon->gpus->gpu[i].is_mig && daemon->gpus->gpu[i].parent == card)
            busy += busy_slices(daemon, i);
    return busy;
}

/*
 * A MIG instance has no meter of its own: of its card's idle power it has its slices' part, and of
 * what is beyond the part that its busy slices are of all busy ones.
 */
static struct drawn drawn_by_instance(const struct daemon *daemon, size_t i)
{
    const double slices = 7;
    const struct gpu_info *info = &daemon->gpus->gpu[i];
    struct drawn drawn = daemon->gpu_states[info->parent].drawn;
    double all_busy = busy_slices_of_card(daemon, info->parent), idle, work = 0;
    idle = drawn.idle_part * info->gpu_slices / slices;
    if (all_busy > 0)
        work = (1 - drawn.idle_part) * busy_slices(daemon, i) / all_busy;
    drawn.energy_j.value *= idle + work;
    drawn.power_w.value *= idle + work;
    drawn.idle_part = idle + work > 0 ? idle / (idle + work) : 0;
    return drawn;
}

void usage_measure(struct daemon *daemon, size_t i)
{
    struct gpu_state *state = &daemon->gpu_states[i];
    gpu_meter_take(&state->meter, &state->sample);
    state->drawn = (struct drawn){
        state->meter.drawn_j, state->sample.power_w, state->meter.idle_part};
    if (daemon->gpus->gpu[i].is_mig && !state->sample.power_w.valid)
        state->drawn = drawn_by_instance(daemon, i);
}

static struct reading part_of(struct reading whole, double part)
{
    return whole.valid ? reading_of(whole.value * part) : READING_NONE;
}

static void book(struct usage *usage, const struct gpu_state *state, const struct share *share,
    double energy_part)
{
    double span_s = state->meter.activity_span_s;
    if (share->smact.valid) {
        usage->smact_s += share->smact.value * span_s;
        usage->span_s += span_s;
    }
    if (state->drawn.energy_j.valid)
        usage->energy_j = reading_of(
            reading_or(usage->energy_j, 0) + state->drawn.energy_j.value * energy_part);
    usage->is_estimated |= state->shares_estimated;
}

void usage_take(struct daemon *daemon, struct gpu_state *state)
{
    weigh(state);
    for (size_t i = 0; i < state->n_shares; i++) {
        struct share *share = &state->shares[i];
        double energy_part = share_of_energy(
            share->holder.weight, state->n_shares, state->drawn.idle_part);
        share->smact = part_of(state->sample.smact, share->holder.weight);
        share->power_w = part_of(state->drawn.power_w, energy_part);
        struct job *job = share->task ? job_find(daemon, share->task) : NULL;
        if (job)
            book(&job->usage, state, share, energy_part);
    }
}

struct reading usage_smact(const struct usage *usage)
{
    return usage->span_s > 0 ? reading_of(usage->smact_s / usage->span_s) : READING_NONE;
}
