/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when simulated GPUs are sampled: as seldom as changes no decision. A sample is planned,
 * at a whole second,
 *
 *   - after memory was taken, or a task came or went (sampling_plan);
 *   - MIX_SAMPLES times after the tasks of a GPU changed: from then on the core trusts the mean
 *     over the new tasks alone;
 *   - each MEAN_US, until the mean over the window is near the present activity;
 *   - when a resident's hold-off ends without a further event;
 *   - each second while an allocation on the GPU waits for memory: the core decides on it then.
 *
 * No other sample would change what the core decides, since the activity stays constant. But the
 * core's mean over the window weighs samples by their number. So before the activity changes,
 * sampling_catch_up applies the samples of the window that were left out, one of three.
 *
 * Example, window 90 s: a task starts on an idle GPU at 10 s. It is sampled at 10, 11 and 12 s,
 * then each 3 s while the mean rises, then no more. At 500 s a second task arrives: samples of 410,
 * 413, ... 497 s are applied first, and the mean before the change is that of a GPU sampled each
 * second.
 */
#include "sim/sampling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"

/* The daemon's default. */
#define SAMPLE_US SECOND_US

/* The core trusts the mean over the present tasks alone after so many samples of them
 * (src/core/state/apply_sample.c). */
#define MIX_SAMPLES 3

/* Chosen: a mean of every third sample differs little from the mean of all. */
#define MEAN_US (3 * SAMPLE_US)

/* A difference in SMACT. Chosen: a mean that is nearer orders GPUs as the activity itself would. */
#define MEAN_NEAR 0.1

int sampling_init(struct sampling *sampling)
{
    int n_places = sampling->gpus->cluster->n_places, r = 0;
    sampling->current = -1;
    sampling->places = calloc((size_t)n_places, sizeof *sampling->places);
    if (!sampling->places)
        return -ENOMEM;
    for (int i = 0; i < n_places; i++)
        sampling->places[i] = (struct place_sampling){.next_us = TIME_NEVER, .last_us = -SAMPLE_US};
    for (int i = 0; i < n_places && r == 0; i++)
        r = sampling_plan(sampling, i);
    return r;
}

void sampling_fini(struct sampling *sampling)
{
    free(sampling->places);
    free(sampling->memory);
}

/* ---- planning ---- */

static int64_t round_up_to_sample(int64_t time_us)
{
    return (time_us + SAMPLE_US - 1) / SAMPLE_US * SAMPLE_US;
}

/* Of two planned samples of a place, only the earlier one is taken. */
static int plan_at(struct sampling *sampling, int place, int64_t time_us)
{
    time_us = round_up_to_sample(time_us);
    if (sampling->every_second || sampling->places[place].next_us <= time_us)
        return 0;
    sampling->places[place].next_us = time_us;
    struct sim_wakeup wakeup = {
        .kind = sampling->wakeup_kind, .time_us = time_us, .subject = (uint64_t)place};
    return sim_schedule_wakeup(sampling->sim, &wakeup);
}

/* Places are sampled in order: a decision that follows from a place's sample comes too late for
 * this second's samples of that place and the places before it. */
int sampling_plan(struct sampling *sampling, int place)
{
    return plan_at(sampling, place, sim_now_us(sampling->sim) + (place <= sampling->current));
}

/* ---- sampling ---- */

static double activity_of(const struct sampling *sampling, int place)
{
    return sampling->gpus->places[place].smact / sampling->gpus->cluster->places[place].sms;
}

/* Lists the tasks that have memory on the place, also those that do not compute: they are paused,
 * being suspended, or their allocations wait. */
static int list_task_memory(
    struct sampling *sampling, const struct place *place, struct core_sample *sample)
{
    const struct gpu_view *gpu = &core_view(sim_core(sampling->sim))->gpus[sample->gpu];
    if (ARRAY_RESERVE(sampling->memory, sampling->memory_capacity, gpu->n_residents) < 0)
        return -ENOMEM;
    sample->tasks = sampling->memory;
    sample->n_tasks = 0;
    for (int i = 0; i < gpu->n_residents; i++) {
        uint64_t id = gpu->residents[i].task;
        int64_t bytes = gpu_memory_of(place->memory, id);
        if (bytes > 0)
            sampling->memory[sample->n_tasks++] = (struct task_memory){.task = id,
                .mem_used_bytes = reading_of((double)bytes),
                .hooked = sampling->settings->preload,
                .carried = sampling->settings->preload && sampling->settings->carries_mps};
    }
    return 0;
}

static int make_sample(struct sampling *sampling, int i, struct event *ret_event)
{
    const struct place *place = &sampling->gpus->places[i];
    *ret_event = (struct event){.kind = EVENT_SAMPLE, .time_us = sim_now_us(sampling->sim)};
    ret_event->sample = (struct core_sample){.gpu = i,
        .mem_used_bytes = reading_of((double)place->memory->used_bytes),
        .smact = reading_of(activity_of(sampling, i)),
        .power_w = reading_of(sampling->gpus->gpus[sampling->gpus->cluster->places[i].gpu].power_w),
        .external_processes = reading_of(0)};
    return list_task_memory(sampling, place, &ret_event->sample);
}

static int sample_now(struct sampling *sampling, int place)
{
    struct event event;
    int r = make_sample(sampling, place, &event);
    if (r < 0)
        return r;
    sampling->current = place;
    sampling->places[place].last_us = event.time_us;
    r = sim_step(sampling->sim, &event);
    sampling->current = -1;
    return r < 0 ? r : 0;
}

int sampling_sample_all(struct sampling *sampling)
{
    int r = 0;
    for (int i = 0; i < sampling->gpus->cluster->n_places && r == 0; i++)
        r = sample_now(sampling, i);
    return r;
}

int sampling_catch_up(struct sampling *sampling, int place)
{
    struct place_sampling *sampled = &sampling->places[place];
    struct core *core = sim_core(sampling->sim);
    if (sampling->every_second || core_view(core)->gpus[place].claims[CLAIM_EXCLUSIVE])
        return 0;
    int64_t now_us = sim_now_us(sampling->sim), first_us = now_us - sampling->settings->window_us;
    struct event event;
    int r = make_sample(sampling, place, &event);
    event.time_us = round_up_to_sample(
        first_us > sampled->last_us ? first_us : sampled->last_us + SAMPLE_US);
    for (; event.time_us < now_us && r >= 0; event.time_us += MEAN_US) {
        r = core_apply(core, &event);
        sampled->last_us = event.time_us;
    }
    return r < 0 ? r : 0;
}

/* ---- which samples follow ---- */

/* When the first hold-off of a resident ends if nothing else happens; TIME_NEVER: there is none. */
static int64_t next_settled_us(const struct core_settings *settings, const struct gpu_view *gpu)
{
    int64_t earliest_us = TIME_NEVER;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        int64_t latest_us = resident->held_us + settings->settle_max_us;
        int64_t quiet_us = residence_has_risen(resident->residence)
                               ? resident->grew_us + settings->settle_us
                               : latest_us;
        int64_t settled_us = quiet_us < latest_us ? quiet_us : latest_us;
        if (!residence_has_settled(resident->residence) && settled_us < earliest_us)
            earliest_us = settled_us;
    }
    return earliest_us;
}

/* Tests whether policies decide the same by the mean over the window as by the present activity. */
static bool is_mean_current(const struct sampling *sampling, int place)
{
    double mean = core_view(sim_core(sampling->sim))->gpus[place].smact_level.value;
    double now = activity_of(sampling, place);
    double max = sampling->settings->conditions.smact_max;
    return fabs(mean - now) < MEAN_NEAR && (mean > max) == (now > max);
}

static int plan_next(struct sampling *sampling, int place)
{
    int64_t now_us = sim_now_us(sampling->sim);
    const struct gpu_view *gpu = &core_view(sim_core(sampling->sim))->gpus[place];
    int64_t settled_us = next_settled_us(sampling->settings, gpu);
    int r = 0;
    if (gpu->claims[CLAIM_EXCLUSIVE])
        return 0; /* no other task may join here: only the end of its task matters */
    if (gpu->mix_since_us > now_us - (MIX_SAMPLES - 1) * SAMPLE_US && gpu->n_residents)
        r = plan_at(sampling, place, now_us + SAMPLE_US);
    if (r == 0 && gpu->claims[CLAIM_CLOSED])
        r = plan_at(sampling, place, now_us + SAMPLE_US);
    if (r == 0 && !is_mean_current(sampling, place))
        r = plan_at(sampling, place, now_us + MEAN_US);
    if (r == 0 && settled_us != TIME_NEVER)
        r = plan_at(sampling, place, settled_us > now_us ? settled_us : now_us + SAMPLE_US);
    return r;
}

int sampling_on_wakeup(struct sampling *sampling, int place)
{
    struct place_sampling *sampled = &sampling->places[place];
    if (sampled->next_us != sim_now_us(sampling->sim))
        return 0; /* an earlier sample was planned after this one, and has been taken */
    sampled->next_us = TIME_NEVER;
    int r = sample_now(sampling, place);
    return r < 0 ? r : plan_next(sampling, place);
}
