/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/tally.h"

#include <math.h>

#include "base/units.h"

#define GROWTH_LEAST_BYTES (100 * MIB)

struct reading mean_value(const struct mean *mean)
{
    return mean->span_s > 0 ? reading_of(mean->sum / mean->span_s) : READING_NONE;
}

static void mean_add(struct mean *mean, struct reading value, double factor, double span_s)
{
    if (!value.valid || span_s <= 0)
        return;
    mean->sum += value.value * factor * span_s;
    mean->span_s += span_s;
}

static void raise(struct reading *peak, struct reading now)
{
    if (now.valid)
        *peak = reading_of(fmax(now.value, reading_or(*peak, 0)));
}

/* The command's part of what was done since the last look. One that has just gone has the part it
 * had. */
static void weigh(struct tally *tally, const struct presence *presence)
{
    struct gpu_holder holders[2] = {
        {.processes = presence->ours,
            .is_mps = presence->is_mps,
            .sm_utilisation = presence->our_sm_utilisation},
        {.processes = presence->others,
            .is_mps = presence->is_mps,
            .sm_utilisation = presence->other_sm_utilisation},
    };
    if (presence->ours == 0 && presence->others == 0)
        return;
    tally->is_estimated |= attribution_weigh(holders, 2);
    tally->weight = holders[0].weight;
    tally->holders = (presence->ours > 0) + (size_t)presence->others;
}

static void add_span(struct tally *tally, const struct gpu_sample *sample)
{
    const struct gpu_meter *meter = &tally->meter;

    gpu_meter_take(&tally->meter, sample);
    double active_s = meter->activity_span_s;
    mean_add(&tally->smact, sample->smact, 1, active_s);
    mean_add(&tally->our_smact, sample->smact, tally->weight, active_s);
    mean_add(&tally->smocc, sample->smocc, 1, active_s);
    mean_add(&tally->dram_active, sample->dram_active, 1, active_s);
    if (!meter->drawn_j.valid)
        return;
    tally->power_w.sum += meter->drawn_j.value;
    tally->power_w.span_s += meter->drawn_span_s;
    tally->energy_j += meter->drawn_j.value;
    if (tally->weight > 0)
        tally->our_energy_j += meter->drawn_j.value * attribution_energy_share(tally->weight,
                                                          tally->holders, meter->idle_part);
}

static bool has_grown(const struct tally *tally, const struct gpu_sample *sample)
{
    return sample->mem_used_bytes.valid && tally->first_used_bytes.valid &&
           sample->mem_used_bytes.value - tally->first_used_bytes.value >
               (double)GROWTH_LEAST_BYTES;
}

void tally_take(
    struct tally *tally, const struct gpu_sample *sample, const struct presence *presence)
{
    if (!tally->meter.at_us)
        tally->first_used_bytes = sample->mem_used_bytes;
    tally->has_grown |= has_grown(tally, sample);
    tally->lists_nobody |= !sample->processes.valid && sample->health == GPU_HEALTH_OK;
    tally->used |= presence->ours > 0;
    tally->with_others |= presence->ours > 0 && presence->others > 0;
    raise(&tally->our_peak_bytes, presence->our_memory_bytes);
    raise(&tally->peak_bytes, sample->mem_used_bytes);
    weigh(tally, presence);
    add_span(tally, sample);
}
