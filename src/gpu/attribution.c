/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Example: a GPU draws 100 J, 40 of them idle power, with two time-sliced tasks of weights 0.75 and
 * 0.25. They are charged 20 + 45 = 65 J and 20 + 15 = 35 J.
 */
#include "gpu/attribution.h"

#include <math.h>

#include "base/clock.h"

bool attribution_weigh(struct gpu_holder *holders, size_t count)
{
    double sum = 0;
    unsigned processes = 0, active = 0;
    bool is_known = true;
    for (size_t i = 0; i < count; i++) {
        const struct gpu_holder *holder = &holders[i];
        if (holder->processes == 0)
            continue;
        active++;
        processes += holder->processes;
        is_known &= holder->sm_utilisation.valid && !holder->is_mps;
        sum += reading_or(holder->sm_utilisation, 0);
    }
    is_known &= sum > 0;
    for (size_t i = 0; i < count; i++) {
        struct gpu_holder *holder = &holders[i];
        if (holder->processes == 0)
            holder->weight = 0;
        else if (active > 1 && is_known)
            holder->weight = holder->sm_utilisation.value / sum;
        else
            holder->weight = (double)holder->processes / processes;
    }
    return active > 1 && !is_known;
}

double attribution_energy_share(double weight, size_t count, double idle_part)
{
    return idle_part / (double)count + weight * (1 - idle_part);
}

static void note_idle_power(struct gpu_meter *meter, const struct gpu_sample *sample)
{
    bool is_empty = sample->processes.valid && sample->processes.count == 0;
    if (!sample->power_w.valid || (meter->was_empty && !is_empty))
        return;
    if (!meter->idle_w.valid || (is_empty && !meter->was_empty) ||
        sample->power_w.value < meter->idle_w.value)
        meter->idle_w = sample->power_w;
    meter->was_empty = is_empty;
}

/* While the counter is missing, power times time counts; the counter's next reading leaves that
 * part out. */
static void measure_energy(struct gpu_meter *meter, const struct gpu_sample *sample)
{
    bool by_counter = sample->energy_j.valid && meter->energy_j.valid;
    bool by_power = !sample->energy_j.valid && sample->power_w.valid && meter->span_s > 0;
    meter->drawn_j = READING_NONE;
    meter->drawn_span_s = 0;
    if (by_counter) {
        double counted_j = sample->energy_j.value - meter->energy_j.value;
        meter->drawn_j = reading_of(fmax(0, counted_j - meter->by_power_j));
        meter->drawn_span_s = (double)(sample->at_us - meter->accounted_us) / (double)SECOND_US;
    } else if (by_power) {
        meter->drawn_j = reading_of(sample->power_w.value * meter->span_s);
        meter->drawn_span_s = meter->span_s;
        meter->by_power_j += meter->drawn_j.value;
    }
    if (sample->energy_j.valid) {
        meter->energy_j = sample->energy_j;
        meter->by_power_j = 0;
    }
    if (meter->drawn_j.valid || sample->energy_j.valid)
        meter->accounted_us = sample->at_us;
}

/* Activity may be measured less often than it is sampled; time without a value does not count. */
static double activity_span_s(struct gpu_meter *meter, const struct gpu_sample *sample)
{
    int64_t at_us = sample->activity.at_us ? sample->activity.at_us : sample->at_us,
            before_us = meter->activity_at_us;
    if (sample->smact.valid && at_us <= before_us)
        return 0;
    meter->activity_at_us = sample->smact.valid ? at_us : sample->at_us;
    if (!sample->smact.valid)
        return 0;
    return before_us ? (double)(at_us - before_us) / (double)SECOND_US : meter->span_s;
}

void gpu_meter_take(struct gpu_meter *meter, const struct gpu_sample *sample)
{
    meter->span_s = meter->at_us ? (double)(sample->at_us - meter->at_us) / (double)SECOND_US : 0;
    meter->activity_span_s = activity_span_s(meter, sample);
    measure_energy(meter, sample);
    note_idle_power(meter, sample);
    meter->idle_part = 0;
    if (meter->idle_w.valid && sample->power_w.valid && sample->power_w.value > 0)
        meter->idle_part = fmin(1, meter->idle_w.value / sample->power_w.value);
    meter->at_us = sample->at_us;
}
