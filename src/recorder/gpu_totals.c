/* SPDX-License-Identifier: Apache-2.0 */
/* Adds samples up: means weighted by time, energy by gpu/attribution.h. */
#include "recorder/gpu_totals.h"

#include <math.h>

#include "base/units.h"

/* More than a bare CUDA context takes. Chosen. */
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

static void raise_peak(struct reading *peak, struct reading now)
{
    if (now.valid)
        *peak = reading_of(fmax(now.value, reading_or(*peak, 0)));
}

/* The command's part of the activity since the last sample. When all processes have just ended, the
 * part at the previous sample is used. */
static void update_weight(struct gpu_totals *totals, const struct gpu_occupants *occupants)
{
    struct gpu_holder holders[2] = {
        {.processes = occupants->ours,
            .is_mps = occupants->is_mps,
            .sm_utilisation = occupants->our_sm_utilisation},
        {.processes = occupants->others,
            .is_mps = occupants->is_mps,
            .sm_utilisation = occupants->other_sm_utilisation},
    };
    if (occupants->ours == 0 && occupants->others == 0)
        return;
    totals->is_estimated |= attribution_weigh(holders, 2);
    totals->weight = holders[0].weight;
    totals->holders = (occupants->ours > 0) + (size_t)occupants->others;
}

static void add_span(struct gpu_totals *totals, const struct gpu_sample *sample)
{
    const struct gpu_meter *meter = &totals->meter;
    gpu_meter_take(&totals->meter, sample);
    double active_s = meter->activity_span_s;
    mean_add(&totals->smact, sample->smact, 1, active_s);
    mean_add(&totals->our_smact, sample->smact, totals->weight, active_s);
    mean_add(&totals->smocc, sample->smocc, 1, active_s);
    mean_add(&totals->dram_active, sample->dram_active, 1, active_s);
    if (!meter->drawn_j.valid)
        return;
    totals->power_w.sum += meter->drawn_j.value;
    totals->power_w.span_s += meter->drawn_span_s;
    totals->energy_j += meter->drawn_j.value;
    if (totals->weight > 0)
        totals->our_energy_j += meter->drawn_j.value * attribution_energy_share(totals->weight,
                                                           totals->holders, meter->idle_part);
}

static bool has_grown(const struct gpu_totals *totals, const struct gpu_sample *sample)
{
    return sample->mem_used_bytes.valid && totals->first_used_bytes.valid &&
           sample->mem_used_bytes.value - totals->first_used_bytes.value >
               (double)GROWTH_LEAST_BYTES;
}

void gpu_totals_add(struct gpu_totals *totals, const struct gpu_sample *sample,
    const struct gpu_occupants *occupants)
{
    if (!totals->meter.at_us)
        totals->first_used_bytes = sample->mem_used_bytes;
    totals->has_grown |= has_grown(totals, sample);
    totals->no_process_list |= !sample->processes.valid && sample->health == GPU_HEALTH_OK;
    totals->used |= occupants->ours > 0;
    totals->with_others |= occupants->ours > 0 && occupants->others > 0;
    raise_peak(&totals->our_peak_bytes, occupants->our_memory_bytes);
    raise_peak(&totals->peak_bytes, sample->mem_used_bytes);
    update_weight(totals, occupants);
    add_span(totals, sample);
}
